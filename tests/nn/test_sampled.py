"""A model over a sample that leaves nothing out gives what it gives over the whole graph, values and gradients."""

from dataclasses import replace

import pytest
import torch
from tests.backbones import PLAIN, WITH_LIFTED
from tests.nn.test_model import IN, USAGES, make

from legnn.graph import Adjacency, LabelGraph, sample_label_graph
from legnn.nn.message_passing import class_mean

CLASSES, NODES = 4, 40


def graph_of(*, weighted: bool, label_edges: bool) -> LabelGraph:
    """Parallel edges, a node with none, a class that nobody shows."""
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(0, NODES - 1, (2, 150), generator=generator)
    weight = torch.rand(150, generator=generator, dtype=torch.float64) + 0.5 if weighted else None
    among = torch.rand(CLASSES, CLASSES, generator=generator, dtype=torch.float64) if label_edges else None
    shown = torch.arange(10, 25)
    return LabelGraph(
        Adjacency.from_edge_index(edge_index, NODES, weight), shown, shown % (CLASSES - 1), CLASSES, among
    )


SEEDS = torch.tensor([39, 3, 30, 0, 7])


def check(graph: LabelGraph, backbone: str, labels: str, dtype: torch.dtype = torch.float64, **options) -> None:
    options = {"dropout": 0.0, "input_dropout": 0.0, "norm": "layer", "feature_scale": "none"} | options
    model = make(CLASSES, backbone, labels, **options).to(dtype).train()
    x = torch.randn(NODES, IN, dtype=dtype)
    sample = sample_label_graph(graph, SEEDS, (None,) * 3, (12, 34))
    if options.get("label_features") == "class-mean":
        sample = replace(sample, class_mean=class_mean(graph, x))
    found = []
    for logits in (
        model(model.prepare(x), graph)[SEEDS],
        model(model.prepare(x[sample.nodes]), sample),
    ):
        model.zero_grad()
        logits.square().sum().backward()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]
        found.append([logits.detach(), *gradients])
    exact = {} if dtype == torch.float64 else {"rtol": 1e-3, "atol": 1e-3}
    for whole, part in zip(*found, strict=True):
        torch.testing.assert_close(part, whole, **exact)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("label_edges", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalize", ["relation", "joint"])
@pytest.mark.parametrize("backbone", PLAIN)
def test_a_sample_of_everything_is_the_whole_graph(backbone, normalize, weighted, label_edges, dtype):
    graph = graph_of(weighted=weighted, label_edges=label_edges)
    check(graph, backbone, "enhanced", dtype, normalize=normalize, label_edges=label_edges)


@pytest.mark.parametrize("residual", ["none", "identity", "linear"])
@pytest.mark.parametrize("labels", USAGES)
@pytest.mark.parametrize("backbone", WITH_LIFTED)
def test_for_every_use_of_labels_and_every_residual(backbone, labels, residual):
    check(graph_of(weighted=False, label_edges=False), backbone, labels, residual=residual)


@pytest.mark.parametrize("options", [{"symmetric_norm": True}, {"target_attention": False}])
@pytest.mark.parametrize("normalize", ["relation", "joint"])
def test_for_every_kind_of_attention(options, normalize):
    check(graph_of(weighted=True, label_edges=False), "gat", "enhanced", normalize=normalize, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"symmetric_norm": True, "scaled_scores": True},
        {"attention_vectors": "shared"},
        {"target_map": True},
        {"target_map": True, "attention_vectors": "shared", "symmetric_norm": True, "scaled_scores": True},
        {"bias": False},
    ],
)
@pytest.mark.parametrize("normalize", ["relation", "joint"])
def test_for_the_published_kinds_of_attention(options, normalize):
    check(
        graph_of(weighted=True, label_edges=True), "gat", "enhanced", normalize=normalize, label_edges=True, **options
    )


@pytest.mark.parametrize("absent_label", ["skip", "zero"])
@pytest.mark.parametrize("backbone", WITH_LIFTED)
def test_for_a_weighted_mean_of_the_relations(backbone, absent_label):
    graph = graph_of(weighted=False, label_edges=False)
    check(graph, backbone, "enhanced", node_weight=2.0, absent_label=absent_label)


@pytest.mark.parametrize("label_features", ["class-mean", "given"])
def test_for_other_features_of_labels(label_features):
    check(graph_of(weighted=False, label_edges=False), "gcn", "enhanced", label_features=label_features)
