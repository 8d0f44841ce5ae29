"""The preset `published` is what the paper's code computes, written out relation by relation and edge by edge."""

import math

import pytest
import torch
import torch.nn.functional as F
from tests.named import named
from torch import Tensor

from legnn.config import GraphFacts, Settings
from legnn.graph import Adjacency, LabelGraph, sample_label_graph
from legnn.nn import LEGNN

FACTS = GraphFacts(num_train=9, num_classes=4, counts_features=False, has_label_edges=False)
NODES, CLASSES, IN = 14, 4, 5
UNDROPPED = {"dropout": 0.0, "input_dropout": 0.0, "layer_dropout": 0.0}
FORMS = {"arxiv": ("ogbn-arxiv", 12, 3), "mag": ("ogbn-mag", 16, 8)}
"""The name of the data, and in these tests the width and heads."""


def published(form: str, num_types: int = 1, **given) -> LEGNN:
    source, hidden, heads = FORMS[form]
    settings = Settings(preset="published").override(
        named(**{"source": source, "hidden": hidden, **UNDROPPED, **given})
    )
    model = settings.resolve(FACTS).model
    assert given or model.attention.heads == heads
    return LEGNN(IN, CLASSES, model, num_types=num_types)


def random_model(form: str, **given) -> LEGNN:
    """All parameters and running statistics are random: nothing is left at zero or one."""
    torch.manual_seed(0)
    model = published(form, **given).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    return model


def edges_of(form: str) -> list[tuple[int, int]]:
    """`(source, target)`: a symmetric multigraph with parallel edges; with self-loops, or with a node without edges."""
    generator = torch.Generator().manual_seed(3)
    ends = torch.randint(0, NODES - 1, (2, 20), generator=generator).T.tolist()
    once = [(u, v) for u, v in ends if u != v] + [(0, 1), (1, 0), (2, 5)]
    loops = [(v, v) for v in range(NODES)] if form == "arxiv" else []
    return [*once, *((v, u) for u, v in once), *loops]


ATTACHED = {0: 0, 2: 1, 3: 0, 6: 1, 7: 2, 9: 0, 11: 2}
"""T: nodes with label edges, and their classes; nobody shows class 3."""
PREDICTED = [1, 4, 5, 8, 12, 13]


def graph_of(form: str) -> LabelGraph:
    adjacency = Adjacency.from_edge_index(torch.tensor(edges_of(form)).T, NODES)
    return LabelGraph(adjacency, torch.tensor(list(ATTACHED)), torch.tensor(list(ATTACHED.values())), CLASSES)


def one_relation(
    edges: list[tuple[int, int]], sources: Tensor, targets: Tensor, A: Tensor, a: Tensor,
    B: Tensor | None, b: Tensor | None, *, by_degree: bool,
) -> Tensor:  # fmt: skip
    """`m_v^r` of every target of one relation, with degrees and softmax within it."""
    heads, width = a.shape
    out_degree, in_degree = [0] * len(sources), [0] * len(targets)
    for u, v in edges:
        out_degree[u] += 1
        in_degree[v] += 1
    z = [(A @ h).view(heads, width) for h in sources]
    if by_degree:
        z = [one / math.sqrt(max(1, degree)) for one, degree in zip(z, out_degree, strict=True)]
    rows = []
    for v in range(len(targets)):
        senders = [u for u, target in edges if target == v]
        if not senders:
            rows.append(torch.zeros(heads * width, dtype=A.dtype))
            continue
        scores = torch.stack([(z[u] * a).sum(1) for u in senders])
        if B is not None:
            scores = scores + ((B @ targets[v]).view(heads, width) * b).sum(1)
        share = torch.softmax(F.leaky_relu(scores, 0.2), 0)
        message = sum(share[k][:, None] * z[u] for k, u in enumerate(senders))
        rows.append((message * math.sqrt(max(1, in_degree[v])) if by_degree else message).flatten())
    return torch.stack(rows)


def batch_norm(x: Tensor, norm: torch.nn.BatchNorm1d | None, statistics: tuple[Tensor, Tensor] | None) -> Tensor:
    if norm is None:
        return x
    mean, variance = (x.mean(0), x.var(0, correction=0)) if statistics is None else statistics
    return (x - mean) / torch.sqrt(variance + 1e-5) * norm.weight + norm.bias


def of_code(form: str, model: LEGNN, x: Tensor, *, training: bool) -> Tensor:
    """The logits of the published code with the parameters of `model`; those it has beside them are random."""
    nn = edges_of(form)
    rnn = [(v, u) for u, v in nn]
    nl, ln = list(ATTACHED.items()), [(c, i) for i, c in ATTACHED.items()]
    heads, by_degree = FORMS[form][2], form == "arxiv"
    nodes, labels = x @ model.encoder.project.weight.T, torch.eye(CLASSES).double() @ model.encoder.label_embedding.rows
    width = nodes.size(1)
    for block in model.layers:
        layer = block.layer
        A_node, A_label = layer.node.weight, layer.label.weight
        # attention over one edge does not depend on its score
        a_node, a_label = layer.source, torch.randn(heads, width // heads, dtype=x.dtype)
        B_node, b_node = (None, None) if by_degree else (layer.target_map.weight, layer.target)
        m_nn, m_rnn = (
            one_relation(edges, nodes, nodes, A_node, a_node, B_node, b_node, by_degree=by_degree)
            for edges in (nn, rnn)
        )
        m_ln = one_relation(ln, labels, nodes, A_label, a_label, B_node, b_node, by_degree=by_degree)
        statistics = {
            norm: None if training or norm is None else (norm.running_mean.clone(), norm.running_var.clone())
            for norm in (block.norm, getattr(block, "label_norm", None))
        }
        new = (m_nn + m_rnn + m_ln) / 3 + nodes @ block.residual.weight.T
        new = torch.relu(batch_norm(new, block.norm, statistics[block.norm]))
        if block is not model.layers[-1]:  # nothing reads the labels of the last layer
            B_label, b_label = (None, None) if by_degree else (layer.label_target_map.weight, layer.label_target)
            m_nl = one_relation(nl, nodes, labels, A_node, a_node, B_label, b_label, by_degree=by_degree)
            m_nl = m_nl + labels @ block.label_residual.weight.T
            labels = torch.relu(batch_norm(m_nl, block.label_norm, statistics[block.label_norm]))
        nodes = new
    return nodes @ model.classifier.weight.T + model.classifier.bias


def loss_gradients(logits: Tensor, model: LEGNN) -> dict[str, Tensor]:
    targets = torch.arange(len(PREDICTED)) % CLASSES
    F.cross_entropy(logits[PREDICTED], targets).backward()
    found = {
        name: torch.zeros_like(one) if one.grad is None else one.grad.clone() for name, one in model.named_parameters()
    }
    model.zero_grad()
    return found


def features() -> Tensor:
    return torch.randn(NODES, IN, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_logits_and_gradients_are_those_of_the_code(form, training):
    model, x = random_model(form).train(training), features()
    expected = of_code(form, model, x, training=training)
    wanted = loss_gradients(expected, model)
    logits = model(x, graph_of(form))
    found = loss_gradients(logits, model)
    exact = {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(logits, expected, **exact)
    assert logits.std() > 0.1
    for name in wanted:
        torch.testing.assert_close(found[name], wanted[name], **exact, msg=name)


def without_gradient(form: str, *, training: bool) -> set[str]:
    model = random_model(form).train(training)
    return {n for n, gradient in loss_gradients(model(features(), graph_of(form)), model).items() if not gradient.any()}


LAST_LABEL_MESSAGE = {"layers.2.layer.label.weight", "layers.1.label_residual.weight"}
"""They reach nodes that show a label alone, which are not predicted."""
VIA_STATISTICS = LAST_LABEL_MESSAGE | {"layers.1.label_norm.weight", "layers.1.label_norm.bias"}
NEVER_ON_MAG = LAST_LABEL_MESSAGE | {"layers.1.layer.label_target_map.weight", "layers.1.layer.label_target"}


def test_the_parameters_without_a_gradient_are_those_of_the_code():
    assert without_gradient("arxiv", training=True) == set()
    assert without_gradient("arxiv", training=False) == VIA_STATISTICS, "reached by way of batch statistics alone"
    assert without_gradient("mag", training=True) == NEVER_ON_MAG


@pytest.mark.parametrize(
    ("source", "classes", "num_types", "of_code", "never_moved", "kept"),
    [("ogbn-arxiv", 40, 1, 5_374_120, 2_047_140, set()), ("ogbn-mag", 349, 4, 5_147_997, 1_313_280, NEVER_ON_MAG)],
)
def test_the_parameters_are_those_of_the_code_that_training_moves(
    source, classes, num_types, of_code, never_moved, kept
):
    settings = Settings(preset="published").override(named(source=source)).resolve(FACTS).model
    with torch.device("meta"):
        model = LEGNN(128, classes, settings, num_types=num_types)
    W, L, norms = settings.hidden, 3, 4 if source == "ogbn-arxiv" else 0
    assert of_code == W * (128 + classes) + L * (6 * W * W + (4 + norms) * W) + W * classes + classes
    untrained = sum(parameter.numel() for name, parameter in model.named_parameters() if name in kept)
    assert model.num_parameters() == of_code - never_moved + untrained


@pytest.mark.parametrize("form", FORMS)
def test_a_sample_of_everything_is_the_whole_graph(form):
    model, x, graph = random_model(form).eval(), features(), graph_of(form)
    seeds = torch.tensor(PREDICTED)
    sample = sample_label_graph(graph, seeds, (None,) * 3, (1, 2))
    found = [model(x, graph)[seeds], model(x[sample.nodes], sample)]
    torch.testing.assert_close(*found)
    ours, theirs = (torch.autograd.grad(one.square().sum(), model.parameters(), allow_unused=True) for one in found)
    for one, other in zip(ours, theirs, strict=True):
        if one is not None and other is not None:
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("form", FORMS)
def test_single_precision_agrees(form):
    model, x = random_model(form).eval(), features()
    expected = model(x, graph_of(form))
    torch.testing.assert_close(model.float()(x.float(), graph_of(form)), expected.float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_the_initial_weights_have_the_distributions_of_the_code(form):
    source, _, _ = FORMS[form]
    settings = Settings(preset="published").override(named(source=source)).resolve(FACTS).model
    torch.manual_seed(0)
    model = LEGNN(128, 40, settings)
    W, H = settings.hidden, settings.attention.heads
    D = W // H

    def assert_normal(tensor: Tensor, std: float) -> None:
        tensor, near = tensor.detach(), 5 / math.sqrt(2 * tensor.numel())
        assert float(tensor.std()) == pytest.approx(std, rel=near)
        assert float(tensor.abs().max()) > 2.5 * std, "a uniform distribution of this deviation ends at 1.73"

    def assert_uniform(tensor: Tensor, bound: float) -> None:
        tensor = tensor.detach()
        assert float(tensor.abs().max()) <= bound
        assert float(tensor.std()) == pytest.approx(bound / math.sqrt(3), rel=0.05)

    def live(parameter: Tensor) -> Tensor:
        for axis, size in enumerate(parameter.shape):
            if size % model.padding.width == 0:
                parameter = parameter.index_select(axis, model.padding.live(size))
        return parameter

    for name, stored in model.layers.named_parameters():
        part, parameter = name.split(".", 1)[1], live(stored)
        if part in ("layer.source", "layer.target", "layer.label_target"):
            assert_normal(parameter, math.sqrt(4 / (D * (H + 1))))
        elif "norm" in part:
            assert torch.equal(parameter, torch.full_like(parameter, float(part.endswith("weight"))))
        elif "residual" in part:
            assert_uniform(parameter, math.sqrt(6 / W))
        else:
            assert_normal(parameter, math.sqrt(2 / W))
    assert_uniform(live(model.encoder.project.weight), 1 / math.sqrt(128))
    assert_uniform(live(model.encoder.label_embedding.rows), 1 / math.sqrt(40))
    assert_uniform(live(model.classifier.weight), 1 / math.sqrt(W))


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat", "gatv2", "transformer", "gin"])
def test_every_backbone_and_every_use_of_labels_can_be_given(backbone, labels):
    dropouts = {"dropout": 0.3, "input_dropout": 0.1, "layer_dropout": 0.1}
    model = published("mag", num_types=2, backbone=backbone, labels=labels, **dropouts).train()
    inputs = model.prepare(features().float(), node_type=torch.arange(NODES) % 2)
    logits = model(inputs, graph_of("mag"))
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert torch.isfinite(model.encoder.project.weight.grad).all()
