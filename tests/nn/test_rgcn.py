"""RGCN equals its equation with dense matrices."""

import pytest
import torch
from tests.nn.relation_graphs import CLASSES, EXACT, RELATIONS, compare, dense_relations, one_hot, row_mean, typed_graph
from torch import nn
from torch_geometric.nn import RGCNConv

from legnn.nn.rgcn import RGCN

IN, OUT = 5, 4


def layer(**options) -> RGCN:
    made = RGCN(IN, OUT, **{"num_types": 3, "relations": RELATIONS, **options}).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def dense(net: RGCN, x, labels, graph):
    types = graph.node_type
    nodes = torch.stack([net.roots[kind](row[None])[0] for kind, row in zip(types.tolist(), x, strict=True)])
    for linear, A in zip(net.neighbors, dense_relations(graph).values(), strict=True):
        nodes = nodes + row_mean(A) @ x @ linear.weight.T
    if labels is None:
        return nodes, None
    Y = one_hot(graph)
    nodes = nodes + Y @ labels @ net.label_to_node.weight.T
    new = net.label_root(labels) + row_mean(Y.T) @ x @ net.node_to_label.weight.T
    if graph.label_adjacency is not None:
        new = new + row_mean(graph.label_adjacency) @ labels @ net.label_to_label.weight.T
    return nodes, new


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("label_edges", [None, False, True])
def test_a_layer_equals_its_equation(label_edges, weighted, ordered):
    enhanced = label_edges is not None
    graph = typed_graph(weighted=weighted, ordered=ordered, label_edges=bool(label_edges))
    net = layer(enhanced=enhanced, label_edges=bool(label_edges))
    x = torch.randn(12, IN, dtype=torch.float64, requires_grad=True)
    labels = torch.randn(CLASSES, IN, dtype=torch.float64, requires_grad=True) if enhanced else None
    wrt = [x, *([labels] if enhanced else []), *net.parameters()]
    compare(net(x, labels, graph), dense(net, x, labels, graph), wrt)


def test_a_vanilla_layer_is_pygs_with_a_root_of_every_type():
    graph, net = typed_graph(), layer(enhanced=False, bias=False)
    theirs = RGCNConv(IN, OUT, len(RELATIONS), root_weight=False, bias=False).double()
    theirs.weight.data = torch.stack([linear.weight.T for linear in net.neighbors])
    x = torch.randn(12, IN, dtype=torch.float64)
    edge_index = graph.adjacency.edge_index
    kinds = [RELATIONS.index(pair) for pair in zip(*graph.node_type[edge_index].tolist(), strict=True)]
    roots = torch.stack([net.roots[kind](row[None])[0] for kind, row in zip(graph.node_type.tolist(), x, strict=True)])
    torch.testing.assert_close(net(x, None, graph)[0], theirs(x, edge_index, torch.tensor(kinds)) + roots, **EXACT)
