"""What backbones have in common that tell relations apart: samples, precision, homogeneous graphs."""

import pytest
import torch
from tests.named import model_settings
from tests.nn.relation_graphs import CLASSES, RELATIONS, compare, typed_graph

from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph, sample_label_graph
from legnn.nn import LEGNN

IN = 5


def model(backbone: str, labels: str = "enhanced", **options) -> LEGNN:
    torch.manual_seed(0)
    chosen = {"hidden": 6, "layers": 2, "heads": 2, "backbone": backbone, "labels": labels, **options}
    return LEGNN(IN, CLASSES, model_settings(**chosen), num_types=3, relations=RELATIONS)


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize("options", [{}, {"residual": "identity", "norm": "layer"}, {"residual": "linear"}], ids=str)
@pytest.mark.parametrize("backbone", ["rgcn", "hgt"])
def test_a_sample_of_everything_is_the_whole_graph(backbone, labels, options):
    check_sample(typed_graph(30), backbone, labels, **options)


@pytest.mark.parametrize("backbone", ["rgcn", "hgt"])
def test_so_it_is_with_weights_and_label_edges(backbone):
    label_edges = backbone == "rgcn"
    graph = typed_graph(30, weighted=True, label_edges=label_edges)
    check_sample(graph, backbone, "enhanced", label_edges=label_edges)


def check_sample(graph, backbone, labels, **options):
    net = model(backbone, labels, label_at_input=True, **options).double().train()
    x, seeds = torch.randn(30, IN, dtype=torch.float64), torch.tensor([29, 3, 11, 0])
    graph = graph.hide(seeds)
    sample = sample_label_graph(graph, seeds, (None, None), (1, 2))
    types = graph.node_type
    whole = net(net.prepare(x, node_type=types), graph)[seeds]
    part = net(net.prepare(x[sample.nodes], node_type=types[sample.nodes]), sample)
    compare([part], [whole], list(net.parameters()))


@pytest.mark.parametrize("backbone", ["rgcn", "hgt"])
def test_a_homogeneous_graph_has_one_relation_and_one_root(backbone):
    graph = typed_graph(30)
    graph = LabelGraph(graph.adjacency, graph.shown, graph.y, CLASSES)
    net = LEGNN(IN, CLASSES, model_settings(hidden=6, layers=2, heads=2, backbone=backbone))
    logits = net(net.prepare(torch.randn(30, IN)), graph)
    logits.sum().backward()
    assert logits.shape == (30, CLASSES)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("backbone", ["rgcn", "hgt"])
def test_single_precision_computes_what_double_precision_does(backbone):
    graph, x = typed_graph(30), torch.randn(30, IN)
    net = model(backbone, norm="layer", residual="linear", label_at_input=True)

    def outcome(like: torch.dtype) -> tuple[torch.Tensor, list[torch.Tensor]]:
        used = net.to(like)
        used.zero_grad()
        logits = used(used.prepare(x.to(like), node_type=graph.node_type), graph)
        logits.square().sum().backward()
        return logits.detach(), [p.grad.clone() for p in used.parameters()]

    exact = outcome(torch.float64)
    found = outcome(torch.float32)
    torch.testing.assert_close(found[0].double(), exact[0], rtol=1e-4, atol=1e-4)
    for one, other in zip(found[1], exact[1], strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("backbone", ["rgcn", "hgt"])
def test_every_parameter_has_a_gradient_where_a_relation_has_no_edges(backbone):
    net = model(backbone)
    types = torch.tensor([0, 1, 1])
    adjacency = Adjacency.from_edge_index(torch.tensor([[1], [0]]), 3)
    graph = LabelGraph(adjacency, torch.tensor([1]), torch.tensor([0]), CLASSES, None, types)
    net(net.prepare(torch.randn(3, IN), node_type=types), graph)[:1].sum().backward()
    assert [name for name, parameter in net.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("backbone", ["rgcn", "hgt"])
def test_a_joint_normalization_is_refused(backbone):
    with pytest.raises(InputError, match="give normalize = 'relation'"):
        model(backbone, normalize="joint")
