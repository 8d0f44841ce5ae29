"""Every fast form equals the plain one, values and gradients, in single precision and bf16, at odd and empty sizes.

Without a GPU the kernels of the GPU run in Triton's interpreter: the same code, slowly.
"""

import copy
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.graphs import gradients, hub, random_graph, with_labels
from tests.strategies import label_graphs

from legnn import ops
from legnn.graph import LabelGraph
from legnn.nn.features import SparseFeatures
from legnn.ops import AttentionConfig, Scales, cpu, fused, gpu, reference
from legnn.ops.runtime.padding import pad_columns, padded_width

GPU = torch.cuda.is_available()
FORMS = [
    pytest.param((cpu, "cpu"), id="cpu"),
    pytest.param(
        (gpu, "cuda" if GPU else "cpu"), id="gpu" if GPU else "gpu-interpreted", marks=[pytest.mark.gpu] * GPU
    ),
]
TOLERANCE = {torch.float32: {"rtol": 2e-4, "atol": 2e-4}, torch.bfloat16: {"rtol": 2e-2, "atol": 6e-2}}
SIZES = [(1, 0, 1), (2, 5, 3), (63, 200, 60), (5, 0, 4), (20, 100, 139)]


def to(graph: LabelGraph, device: str) -> LabelGraph:
    return LabelGraph(graph.adjacency.to(device), graph.shown.to(device), graph.y.to(device), graph.num_classes)


def pair(*shape, dtype, device):
    """The same random numbers in double precision on the CPU and in `dtype` on `device`, both wanting gradients."""
    fast = torch.randn(*shape).to(device, dtype)
    return fast.cpu().double().requires_grad_(), fast.requires_grad_()


def assert_equal(found, expected, dtype):
    for ours, plain in zip(found, expected, strict=True):
        if ours is None or plain is None:
            assert ours is plain
            continue
        torch.testing.assert_close(ours.detach().cpu().double(), plain.detach().double(), **TOLERANCE[dtype])


def random_scales(nodes, device, *, given: bool):
    if not given:
        return Scales(), Scales()
    plain = Scales(*torch.rand(4, nodes))
    return plain, Scales(*(scale.to(device) for scale in plain))


def check_propagation(form, graph, channels, dtype, *, labels=True, classes=True, scaled=True, added=True):
    kernels, device = form
    x, fast_x = pair(graph.num_nodes, channels, dtype=dtype, device=device)
    rows, fast_rows = pair(graph.num_classes, channels, dtype=dtype, device=device)
    add, fast_add = pair(graph.num_nodes, channels, dtype=dtype, device=device)
    scales, fast_scales = random_scales(graph.num_nodes, device, given=scaled)
    plain = reference.propagate(graph, x, rows if labels else None, add if added else None, scales, classes=classes)
    fast = fused.propagate(
        kernels, to(graph, device), fast_x, fast_rows if labels else None, fast_add if added else None, fast_scales,
        classes=classes,
    )  # fmt: skip
    assert_equal(fast, plain, dtype)
    outputs = [i for i in range(2) if plain[i] is not None]
    ours = gradients([fast[i] for i in outputs], [fast_x, fast_rows, fast_add])
    assert_equal(ours, gradients([plain[i] for i in outputs], [x, rows, add]), dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "channels"), SIZES)
def test_propagation(form, nodes, edges, channels, weighted, dtype):
    graph = with_labels(random_graph(nodes, edges, torch.float32, weighted=weighted))
    check_propagation(form, graph, channels, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("added", [False, True])
def test_propagation_with_and_without_each_part(form, labels, classes, scaled, added):
    graph = with_labels(random_graph(30, 60, torch.float32, weighted=False, directed=False))
    check_propagation(form, graph, 9, torch.float32, labels=labels, classes=classes, scaled=scaled, added=added)


def many(form) -> int:
    """As many neighbors as a node may have; in the interpreter, enough for several pieces."""
    return 100_000 if form[0] is cpu or GPU else 300


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_node_with_very_many_neighbors_and_a_class_with_very_many_nodes(form, weighted):
    graph = with_labels(hub(many(form), torch.float32, weighted=weighted), classes=3, share=0.9)
    # means, or the sum over so many would lose the digits that are compared
    mean = 1 / graph.adjacency.degree
    x, fast_x = pair(graph.num_nodes, 5, dtype=torch.float32, device=form[1])
    plain = reference.propagate(graph, x, None, None, Scales(target=mean, classes=mean), classes=True)
    there = mean.to(form[1])
    fast = fused.propagate(
        form[0], to(graph, form[1]), fast_x, None, None, Scales(target=there, classes=there), classes=True
    )
    assert_equal(fast[:1], plain[:1], torch.float32)
    torch.testing.assert_close(
        fast[1].cpu().double() / graph.num_nodes, plain[1] / graph.num_nodes, rtol=1e-4, atol=1e-5
    )
    assert_equal(gradients(fast[:1], [fast_x]), gradients(plain[:1], [x]), torch.float32)


def check_attention(form, graph, width, dtype, *, looks=True, labels=True, classes=True, scaled=True, added=True):
    kernels, device = form
    channels = 3 * width
    # as wide as a matrix is on the device
    wide = padded_width(channels, torch.empty(0, dtype=dtype, device=device))
    sent, fast_sent = pair(graph.num_nodes, channels + 8, dtype=dtype, device=device)
    rows, fast_rows = pair(graph.num_classes, channels, dtype=dtype, device=device)
    target, fast_target = pair(graph.num_classes, 3, dtype=dtype, device=device)
    add, fast_add = pair(graph.num_nodes, channels, dtype=dtype, device=device)
    scales, fast_scales = random_scales(graph.num_nodes, device, given=scaled)
    kind = AttentionConfig(channels, 3, looks, 0.2)
    plain = reference.attend(
        graph,
        sent,
        rows if labels else None,
        target if looks else None,
        add if added else None,
        scales,
        kind,
        classes=classes,
    )
    fast = fused.attend(
        kernels, to(graph, device), fast_sent, fast_rows if labels else None, fast_target if looks else None,
        pad_columns(fast_add, wide) if added else None, fast_scales, kind, classes=classes,
    )  # fmt: skip
    assert not fast.nodes[:, channels:].any()
    fast = fast._replace(nodes=fast.nodes[:, :channels])
    assert_equal(fast, plain, dtype)
    reached = graph.adjacency.degree > 0
    shown = graph.label_count > 0
    wanted = [(0, slice(None)), (1, reached)] + ([(2, slice(None)), (3, shown)] if classes else [])
    ours = gradients(
        [fast[i][part.to(device) if i % 2 else part] for i, part in wanted],
        [fast_sent, fast_rows, fast_target, fast_add],
    )
    theirs = gradients([plain[i][part] for i, part in wanted], [sent, rows, target, add])
    assert_equal(ours, theirs, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "width"), [(1, 0, 1), (2, 5, 3), (33, 90, 20), (20, 60, 43)])
def test_attention(form, nodes, edges, width, weighted, dtype):
    graph = with_labels(random_graph(nodes, edges, torch.float32, weighted=weighted))
    check_attention(form, graph, width, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize(("scaled", "added"), [(False, True), (True, False)])
def test_attention_with_and_without_each_part(form, looks, labels, classes, scaled, added):
    graph = with_labels(random_graph(15, 30, torch.float32, weighted=False, directed=False))
    check_attention(
        form, graph, 5, torch.float32, looks=looks, labels=labels, classes=classes, scaled=scaled, added=added
    )


@pytest.mark.parametrize("form", FORMS)
def test_attention_over_very_many_neighbors(form):
    graph = with_labels(hub(many(form), torch.float32, weighted=False), classes=3, share=0.9)
    check_attention(form, graph, 2, torch.float32, scaled=False)


@pytest.mark.parametrize("form", FORMS)
def test_attention_of_very_large_scores_does_not_overflow(form):
    graph = LabelGraph.without_labels(hub(50, torch.float32, weighted=False), 2)
    sent = torch.cat([torch.randn(50, 4), torch.full((50, 1), 1e4)], 1).to(form[1])
    kind = AttentionConfig(4, 1, False, 0.2)
    attended = fused.attend(form[0], to(graph, form[1]), sent, None, None, None, Scales(), kind, classes=False)
    assert torch.isfinite(attended.nodes).all()
    assert torch.isfinite(attended.log_denominator).all()


@pytest.mark.parametrize("form", FORMS)
@given(graph=label_graphs(label_edges=False), seed=st.integers(0, 99))
@settings(max_examples=8, deadline=None)
def test_forms_agree_on_random_label_graphs(form, graph, seed):
    torch.manual_seed(seed)
    check_propagation(form, graph, 3, torch.float32)
    check_attention(form, graph, 2, torch.float32)


@pytest.mark.parametrize("form", FORMS)
def test_sums_and_gathers_of_labels(form):
    kernels, device = form
    graph = with_labels(random_graph(60, 10, torch.float32, weighted=False))
    x, fast_x = pair(60, 7, dtype=torch.float32, device=device)
    rows, fast_rows = pair(5, 7, dtype=torch.float32, device=device)
    there = to(graph, device)
    assert_equal(
        [kernels.sum_rows(there.to_labels.classes, fast_x)], [reference.class_sum(graph.to_labels, x)], torch.float32
    )
    pairs = [
        (fused.label_gather(kernels, there, fast_rows), reference.label_gather(graph, rows)),
        (
            fused.add_labels_(kernels, there.to_nodes, fast_x.clone(), fast_rows),
            reference.add_labels_(graph.to_nodes, x.clone(), rows),
        ),
    ]
    for fast, plain in pairs:
        assert_equal([fast], [plain], torch.float32)
        assert_equal(gradients([fast], [fast_x, fast_rows]), gradients([plain], [x, rows]), torch.float32)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "columns", "channels"), [(0, 3, 2), (1, 1, 1), (7, 5, 3), (65, 63, 33)])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_the_projection_of_entries(form, rows, columns, channels, density):
    kernels, device = form
    X = torch.randn(rows, columns) * (torch.rand(rows, columns) < density)
    weight, fast_weight = pair(channels, columns, dtype=torch.float32, device=device)
    features = SparseFeatures.from_dense(X.to(device))
    fast = fused.project_entries(kernels, features.rows, features.rows.weight, fast_weight)
    assert_equal([fast], [X.double() @ weight.T], torch.float32)
    assert_equal(gradients([fast], [fast_weight]), gradients([X.double() @ weight.T], [weight]), torch.float32)


NORMS = {"none": lambda channels: None, "batch": torch.nn.BatchNorm1d, "layer": torch.nn.LayerNorm}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize("zeros", [0, 3])
@pytest.mark.parametrize(("nodes", "channels"), [(2, 1), (63, 60), (300, 7), (20, 139)])
def test_what_follows_a_layer(form, nodes, channels, zeros, kind, dtype):
    kernels, device = form
    norm = NORMS[kind](channels)
    if norm is not None:
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
        torch.nn.init.uniform_(norm.bias)
        if kind == "batch":
            norm.running_mean += 0.1
    fast_norm = None if norm is None else copy.deepcopy(norm).to(device)
    norm = None if norm is None else norm.double()
    x, fast_x = pair(nodes, channels, dtype=dtype, device=device)
    seed = torch.tensor([3, 2**32 - 5])
    plain = reference.finish(x, norm, 0.3, seed)
    fast = fused.finish(kernels, pad_columns(fast_x, channels + zeros), fast_norm, 0.3, seed.to(device))
    assert not fast[:, channels:].any(), "columns that fill up stay zero"
    assert_equal([fast[:, :channels]], [plain], dtype)
    plain_wrt = [x, *([] if norm is None else norm.parameters())]
    fast_wrt = [fast_x, *([] if fast_norm is None else fast_norm.parameters())]
    for ours, theirs in zip(gradients([fast[:, :channels]], fast_wrt), gradients([plain], plain_wrt), strict=True):
        size = max(1.0, float(theirs.abs().max()))
        away = (ours.cpu().double() - theirs.double()).abs() / size > TOLERANCE[dtype]["atol"]
        # rounding may take a number across zero, where the activation's gradient jumps
        assert float(away.double().mean()) <= (0 if dtype == torch.float32 else 0.01)
    if kind == "batch":
        for name in ("running_mean", "running_var"):
            torch.testing.assert_close(getattr(fast_norm, name).cpu().double(), getattr(norm, name), **TOLERANCE[dtype])
    if norm is not None:
        norm.eval()
        fast_norm.eval()
    with torch.no_grad():
        plain = reference.finish(x, norm, 0.3, None)
        fast = fused.finish(kernels, pad_columns(fast_x, channels + zeros), fast_norm, 0.3, None)
    assert not fast[:, channels:].any()
    assert_equal([fast[:, :channels]], [plain], dtype)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_drops_the_same_entries(form):
    kernels, device = form
    x = torch.randn(70, 133)
    seed = torch.tensor([2**32 - 1, 77])
    torch.testing.assert_close(kernels.drop(x.to(device), 0.4, seed.to(device)).cpu(), reference.dropped(x, 0.4, seed))


@pytest.mark.parametrize("form", [form for form in FORMS if GPU or form.id == "cpu"])
def test_the_same_input_gives_the_same_bits(form):
    # in the interpreter, where one program runs after the other, this would say nothing
    kernels, device = form
    graph = to(with_labels(hub(max(many(form) // 10, 300), torch.float32, weighted=False)), device)
    sent = torch.randn(graph.num_nodes, 20, device=device, requires_grad=True)
    rows = torch.randn(5, 12, device=device, requires_grad=True)
    target = torch.randn(5, 3, device=device, requires_grad=True)
    kind = AttentionConfig(12, 3, True, 0.2)

    def once():
        out = fused.attend(kernels, graph, sent, rows, target, None, Scales(), kind, classes=True)
        seed = torch.tensor([1, 2]).to(device)
        finished = fused.finish(kernels, out.nodes, torch.nn.BatchNorm1d(12).to(device), 0.5, seed)
        return [finished, out.labels, *gradients([finished, out.labels], [sent, rows, target])]

    for first, second in zip(once(), once(), strict=True):
        assert torch.equal(first, second)


def test_the_number_of_threads_does_not_change_a_bit():
    graph = with_labels(random_graph(3000, 30_000, torch.float32, weighted=False))
    x, norm = torch.randn(3000, 64), partial(torch.nn.BatchNorm1d, 64)
    found = []
    threads = torch.get_num_threads()
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        nodes, sums = ops.propagate(graph, x, None, None, Scales(), classes=True)
        found.append((nodes, sums, fused.finish(cpu, nodes, norm(), 0.5, torch.tensor([1, 2]))))
    torch.set_num_threads(threads)
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))


def test_other_types_take_the_plain_form():
    assert ops.kernels_for(torch.zeros(1, dtype=torch.float64)) is None
    assert ops.kernels_for(torch.zeros(1, dtype=torch.float32)) is cpu
    assert ops.kernels_for(torch.zeros(1, dtype=torch.bfloat16)) is cpu


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="needs a CUDA device")
def test_a_gpu_takes_triton():
    assert ops.kernels_for(torch.zeros(1, device="cuda")) is gpu
