"""RGCN equals its equation with dense matrices, on whole graphs and on samples of everything."""

import pytest
import torch
from tests.nn.relation_graphs import CLASSES, RELATIONS, dense_relations, one_hot, row_mean, typed_graph
from torch import nn
from torch_geometric.nn import RGCNConv

from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph, sample_label_graph
from legnn.nn import LEGNN, ModelSettings
from legnn.nn.rgcn import RGCN
from legnn.ops.runtime import padding

IN, OUT = 5, 4
EXACT = {"rtol": 1e-10, "atol": 1e-10}


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


def compare(found, expected, wrt):
    pairs = [(one, other) for one, other in zip(found, expected, strict=True) if other is not None]
    seeds = [torch.randn_like(other) for _, other in pairs]
    for one, other in pairs:
        torch.testing.assert_close(one, other, **EXACT)
    mine, theirs = (torch.autograd.grad([pair[k] for pair in pairs], wrt, seeds, allow_unused=True) for k in range(2))
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


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


def model(backbone: str = "rgcn", labels: str = "enhanced", **options) -> LEGNN:
    torch.manual_seed(0)
    chosen = {"hidden": 6, "layers": 2, "heads": 2, "backbone": backbone, "labels": labels, **options}
    return LEGNN(IN, CLASSES, ModelSettings(**chosen), num_types=3, relations=RELATIONS)


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize("options", [{}, {"residual": "identity", "norm": "layer"}, {"residual": "linear"}], ids=str)
@pytest.mark.parametrize("backbone", ["rgcn"])
def test_a_sample_of_everything_is_the_whole_graph(backbone, labels, options):
    check_sample(typed_graph(30), backbone, labels, **options)


@pytest.mark.parametrize("backbone", ["rgcn"])
def test_so_it_is_with_weights_and_label_edges(backbone):
    check_sample(typed_graph(30, weighted=True, label_edges=True), backbone, "enhanced", label_edges=True)


def check_sample(graph, backbone, labels, **options):
    net = model(backbone, labels, label_at_input=True, **options).double().train()
    x, seeds = torch.randn(30, IN, dtype=torch.float64), torch.tensor([29, 3, 11, 0])
    graph = graph.hide(seeds)
    sample = sample_label_graph(graph, seeds, (None, None), (1, 2))
    types = graph.node_type
    whole = net(net.inputs(x, node_type=types), graph)[seeds]
    part = net(net.inputs(x[sample.nodes], node_type=types[sample.nodes]), sample)
    compare([part], [whole], list(net.parameters()))


@pytest.mark.parametrize("backbone", ["rgcn"])
def test_a_homogeneous_graph_has_one_relation_and_one_root(backbone):
    graph = typed_graph(30)
    graph = LabelGraph(graph.adjacency, graph.shown, graph.y, CLASSES)
    net = LEGNN(IN, CLASSES, ModelSettings(hidden=6, layers=2, heads=2, backbone=backbone))
    logits = net(net.inputs(torch.randn(30, IN)), graph)
    logits.sum().backward()
    assert logits.shape == (30, CLASSES)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("backbone", ["rgcn"])
def test_single_precision_computes_what_double_precision_does_with_padding_and_without(backbone, monkeypatch):
    graph, x = typed_graph(30), torch.randn(30, IN)
    net = model(backbone, norm="layer", residual="linear", label_at_input=True)

    def outcome(like: torch.dtype) -> tuple[torch.Tensor, list[torch.Tensor]]:
        used = net.to(like)
        used.zero_grad()
        logits = used(used.inputs(x.to(like), node_type=graph.node_type), graph)
        logits.square().sum().backward()
        return logits.detach(), [p.grad.clone() for p in used.parameters()]

    exact = outcome(torch.float64)
    for multiple in (1, 8):
        monkeypatch.setitem(padding.COLUMN_MULTIPLE, "cpu", multiple)
        found = outcome(torch.float32)
        torch.testing.assert_close(found[0].double(), exact[0], rtol=1e-4, atol=1e-4)
        for one, other in zip(found[1], exact[1], strict=True):
            torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("backbone", ["rgcn"])
def test_every_parameter_has_a_gradient_where_a_relation_has_no_edges(backbone):
    net = model(backbone)
    types = torch.tensor([0, 1, 1])
    adjacency = Adjacency.from_edge_index(torch.tensor([[1], [0]]), 3)
    graph = LabelGraph(adjacency, torch.tensor([1]), torch.tensor([0]), CLASSES, None, types)
    net(net.inputs(torch.randn(3, IN), node_type=types), graph)[:1].sum().backward()
    assert [name for name, parameter in net.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("backbone", ["rgcn"])
def test_a_joint_normalization_is_refused(backbone):
    with pytest.raises(InputError, match="give normalize = 'relation'"):
        model(backbone, normalize="joint")
