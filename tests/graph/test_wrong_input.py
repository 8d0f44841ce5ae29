"""A wrong argument of the low-level interface is refused in one sentence that names it, and reaches no kernel."""

import numpy as np
import pytest
import torch
from torch import tensor

from legnn import InputError
from legnn.graph import Adjacency, LabelGraph, sample_label_graph, select_training_nodes
from legnn.graph.pyg import LabelGraphSampler, hetero_data
from legnn.graph.sampling import full_label_block, full_node_block
from legnn.ops.csr.build import CSR

NODES = torch.arange(40)
EDGES = torch.stack([NODES, (NODES + 1) % 40])
A = Adjacency.from_edge_index(EDGES, 40)
G = LabelGraph.without_labels(A, 3)
SHOWN, Y = tensor([1, 2, 30]), tensor([0, 1, 2])
GENERATOR = torch.Generator()
KEY = (0, 0)


def from_weight(weight):
    return lambda: Adjacency.from_edge_index(EDGES, 40, weight)


def from_edges(edges, nodes=40):
    return lambda: Adjacency.from_edge_index(edges, nodes)


def from_csr(rowptr, col, weight=None, cols=3):
    return lambda: Adjacency.from_csr(CSR(np.array(rowptr), np.array(col), weight), cols)


def sample(seeds=SHOWN, fanouts=(5, 5), key=KEY):
    return lambda: sample_label_graph(G, seeds, fanouts, key)


def show(shown=SHOWN, y=Y):
    return lambda: G.show(shown, y)


def with_value(value: float):
    return torch.ones(40).index_fill(0, tensor([7]), value)


ORDINARY = torch.ones(40)
WRONG = {
    "edges of floats": (from_edges(EDGES.float()), "edge_index"),
    "edges of booleans": (from_edges(EDGES.bool()), "edge_index"),
    "edges as a list": (from_edges([[0], [1]]), "edge_index"),
    "edges as an array": (from_edges(EDGES.numpy()), "edge_index"),
    "edges as a sparse tensor": (from_edges(torch.eye(2).to_sparse()), "edge_index"),
    "edges in one row": (from_edges(NODES), "edge_index"),
    "edges in rows of two": (from_edges(EDGES.T), "edge_index"),
    "an edge from a negative node": (from_edges(EDGES - 1), "edge_index"),
    "an edge from a node outside of the graph": (from_edges(EDGES + 1), "edge_index"),
    "edges of a graph without nodes": (from_edges(EDGES, 0), "edge_index"),
    "a negative number of nodes": (from_edges(EDGES, -1), "num_nodes"),
    "a fractional number of nodes": (from_edges(EDGES, 40.0), "num_nodes"),
    "too few weights": (from_weight(ORDINARY[1:]), "edge_weight"),
    "too many weights": (from_weight(torch.ones(41)), "edge_weight"),
    "weights of two dimensions": (from_weight(ORDINARY[:, None]), "edge_weight"),
    "a weight of zero": (from_weight(with_value(0)), "edge_weight"),
    "a negative weight": (from_weight(with_value(-1)), "edge_weight"),
    "a weight that is no number": (from_weight(with_value(torch.nan)), "edge_weight"),
    "an infinite weight": (from_weight(with_value(torch.inf)), "edge_weight"),
    "a weight that overflows": (from_weight(torch.full((40,), 2**20).bfloat16() * torch.inf), "edge_weight"),
    "weights that require a gradient": (from_weight(torch.ones(40, requires_grad=True)), "edge_weight"),
    "weights of booleans": (from_weight(ORDINARY.bool()), "edge_weight"),
    "complex weights": (from_weight(ORDINARY.cfloat()), "edge_weight"),
    "a column of CSR outside of the graph": (from_csr([0, 1], [10**8]), "col"),
    "a negative column of CSR": (from_csr([0, 1], [-1]), "col"),
    "columns of CSR as floats": (from_csr([0, 1], [1.0]), "col"),
    "row pointers as floats": (from_csr([0.0, 1.0], [1]), "rowptr"),
    "row pointers that do not begin at 0": (from_csr([1, 2], [0, 1]), "rowptr"),
    "row pointers that descend": (from_csr([0, 2, 1, 2], [0, 1]), "rowptr"),
    "row pointers that end early": (from_csr([0, 1], [0, 1]), "rowptr"),
    "no row pointers": (from_csr(np.array([], np.int64), np.array([], np.int64)), "rowptr"),
    "weights of CSR of another length": (from_csr([0, 1], [0], np.ones(2, np.float32)), "weight"),
    "a fractional number of columns": (from_csr([0, 1], [0], cols=2.5), "num_cols"),
    "a negative number of classes": (lambda: LabelGraph.without_labels(A, -1), "num_classes"),
    "weights between labels of another shape": (lambda: LabelGraph.without_labels(A, 3, torch.ones(2, 3)), "label_adj"),
    "a negative weight between labels": (lambda: LabelGraph.without_labels(A, 3, -torch.eye(3)), "label_adjacency"),
    "too few node types": (lambda: LabelGraph.without_labels(A, 3, node_type=tensor([0, 1])), "node_type"),
    "a negative node type": (lambda: LabelGraph.without_labels(A, 3, node_type=NODES - 1), "node_type"),
    "a node that shows its label twice": (show(tensor([1, 1, 2])), "shown"),
    "a shown node outside of the graph": (show(tensor([1, 2, 40])), "shown"),
    "a negative shown node": (show(tensor([1, 2, -1])), "shown"),
    "shown nodes as floats": (show(SHOWN.float()), "shown"),
    "shown nodes as a list": (show([1, 2, 30]), "shown"),
    "shown nodes of two dimensions": (show(SHOWN[None]), "shown"),
    "a mask of another length": (show(torch.ones(39, dtype=torch.bool)), "shown"),
    "a class that is too high": (show(y=tensor([0, 1, 3])), "y"),
    "a class far too high": (show(y=tensor([0, 1, 10**7])), "y"),
    "a negative class": (show(y=tensor([0, 1, -1])), "y"),
    "classes as floats": (show(y=Y.float()), "y"),
    "too few classes": (show(y=Y[1:]), "y"),
    "a hidden node outside of the graph": (lambda: G.hide(tensor([40])), "nodes"),
    "a seed outside of the graph": (sample(tensor([40])), "seeds"),
    "a negative seed": (sample(tensor([-(10**9)])), "seeds"),
    "repeated seeds": (sample(torch.randint(0, 40, (60,))), "seeds"),
    "seeds as floats": (sample(SHOWN + 0.5), "seeds"),
    "seeds as a list": (sample([0, 1]), "seeds"),
    "seeds of two dimensions": (sample(SHOWN[None]), "seeds"),
    "a mask of seeds of another length": (sample(torch.ones(3, dtype=torch.bool)), "seeds"),
    "a fractional fanout": (sample(fanouts=(2.5, 5)), "fanouts"),
    "an infinite fanout": (sample(fanouts=(float("inf"), 5)), "fanouts"),
    "a fanout of zero": (sample(fanouts=(0, 5)), "fanouts"),
    "a negative fanout": (sample(fanouts=(-1, 5)), "fanouts"),
    "a fanout of True": (sample(fanouts=(True, 5)), "fanouts"),
    "no fanouts": (sample(fanouts=()), "fanouts"),
    "one number for all fanouts": (sample(fanouts=5), "fanouts"),
    "a key of one word": (sample(key=(1,)), "key"),
    "a key that is too large": (sample(key=(0, 2**32)), "key"),
    "a fractional key": (sample(key=(0, 0.5)), "key"),
    "a node of a block outside of the graph": (lambda: full_node_block(G, tensor([10**9])), "nodes"),
    "a repeated node of a block": (lambda: full_node_block(G, tensor([1, 1])), "nodes"),
    "a class of a block outside of the graph": (lambda: full_label_block(G, tensor([3])), "classes"),
    "fanouts of PyG's sampler": (lambda: LabelGraphSampler(G, (5, 0)), "fanouts"),
    "features of other nodes": (lambda: hetero_data(G, torch.randn(39, 2)), "x"),
    "classes of other nodes": (lambda: hetero_data(G, torch.randn(40, 2), Y), "y"),
    "features of other labels": (lambda: hetero_data(G, torch.randn(40, 2), None, torch.eye(2)), "label_features"),
    "a negative rate": (lambda: select_training_nodes(NODES, -1, GENERATOR), "rate"),
    "a rate above 1": (lambda: select_training_nodes(NODES, 1.5, GENERATOR), "rate"),
    "a rate of 0": (lambda: select_training_nodes(NODES, 0, GENERATOR), "rate"),
    "a rate that is no number": (lambda: select_training_nodes(NODES, float("nan"), GENERATOR), "rate"),
    "training nodes as floats": (lambda: select_training_nodes(NODES.float(), 0.5, GENERATOR), "train_index"),
    "training nodes as a list": (lambda: select_training_nodes([1, 2], 0.5, GENERATOR), "train_index"),
    "training nodes of two dimensions": (lambda: select_training_nodes(NODES[None], 0.5, GENERATOR), "train_index"),
}


@pytest.mark.parametrize(("call", "name"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_refused_by_name(call, name):
    with pytest.raises(InputError, match=f"`{name}") as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.long, torch.uint8])
def test_weights_of_other_types_become_float32(dtype):
    weight = 1 + torch.arange(40) % 3
    found = Adjacency.from_edge_index(EDGES, 40, weight.to(dtype)).weight
    expected = Adjacency.from_edge_index(EDGES, 40, weight.float()).weight
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)


def test_weights_of_float64_stay_as_they_are():
    assert Adjacency.from_edge_index(EDGES, 40, torch.ones(40).double()).weight.dtype == torch.float64


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_indices_of_other_integer_types_are_converted(dtype):
    graph = LabelGraph.without_labels(Adjacency.from_edge_index(EDGES.to(dtype), 40), 3)
    graph = graph.show(SHOWN.to(dtype), Y.to(dtype))
    assert torch.equal(graph.adjacency.col, A.col)
    assert (graph.shown.dtype, graph.y.dtype) == (torch.long, torch.long)
    found, expected = (sample_label_graph(graph, seeds, (2,), KEY).nodes for seeds in (SHOWN.to(dtype), SHOWN))
    assert torch.equal(found, expected)


def test_a_boolean_mask_stands_for_the_nodes_where_it_is_true():
    mask = torch.zeros(40, dtype=torch.bool).index_fill(0, SHOWN, True)
    assert torch.equal(G.show(mask, Y).shown, SHOWN)
    assert G.show(SHOWN, Y).hide(mask).num_shown == 0
    assert torch.equal(full_node_block(G, mask).nodes, full_node_block(G, SHOWN).nodes)
    found, expected = (sample_label_graph(G, seeds, (3, 3), (1, 1)).nodes for seeds in (mask, SHOWN))
    assert torch.equal(found, expected)
    predicted, shown = select_training_nodes(mask, 0.34, GENERATOR)
    assert torch.equal(torch.cat([predicted, shown]).sort().values, SHOWN)


def test_a_refused_call_changes_nothing_for_later_ones():
    graph = G.show(SHOWN, Y)
    expected = sample_label_graph(graph, tensor([1, 2, 30]), (3, 3), (1, 1))
    for seeds in (NODES[:, None] < 3, tensor([1, 1]), tensor([99])):
        with pytest.raises(InputError):
            sample_label_graph(graph, seeds, (3, 3), (1, 1))
    found = sample_label_graph(graph, tensor([1, 2, 30]), (3, 3), (1, 1))
    assert all(
        torch.equal(*cols)
        for cols in zip(*([b.adjacency.col for b in s.blocks] for s in (found, expected)), strict=True)
    )


def test_tensors_that_are_changed_afterwards_change_no_graph():
    edges, weight, shown, y = EDGES.clone(), torch.ones(40), SHOWN.clone(), Y.clone()
    graph = LabelGraph.without_labels(Adjacency.from_edge_index(edges, 40, weight), 3).show(shown, y)
    edges.zero_(), weight.zero_(), shown.zero_(), y.zero_()
    assert torch.equal(graph.adjacency.edge_index, A.edge_index)
    assert bool((graph.degree == 1).all())
    assert (graph.shown.tolist(), graph.y.tolist()) == (SHOWN.tolist(), Y.tolist())


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_graph_without_edges_or_nodes_is_a_graph(nodes):
    empty = torch.empty(0, dtype=torch.long)
    adjacency = Adjacency.from_edge_index(torch.empty(2, 0, dtype=torch.long), nodes, torch.empty(0))
    graph = LabelGraph.without_labels(adjacency, 2).show(empty, empty)
    assert (graph.num_nodes, graph.adjacency.num_edges, graph.num_shown) == (nodes, 0, 0)
    assert graph.degree.tolist() == [0.0] * nodes
    assert adjacency.transpose is adjacency
    assert sample_label_graph(graph, torch.arange(nodes), (2,), KEY).nodes.tolist() == list(range(nodes))
