"""First and second derivatives of every operation, against finite differences and in each precision, and whatever else
PyTorch may do with them: autocast, `torch.func`, `torch.compile`, and the same bits again."""

import copy

import pytest
import torch
from tests.ops.forms import FORMS, GPU, to, using
from tests.ops.graphs import gradients, hub, random_graph, with_labels
from torch.autograd import gradcheck, gradgradcheck

from legnn import ops
from legnn.errors import InputError
from legnn.nn.features import SparseFeatures
from legnn.ops import AttentionConfig, Scales
from legnn.ops.autograd import run
from legnn.ops.norm_act_dropout import ActDropout, Dropout, norm_act_dropout_by_seed

NODES, CLASSES, COLUMNS, HEADS = 7, 3, 4, 2
GRAPH = with_labels(random_graph(NODES, 15, torch.float32, weighted=True), CLASSES)
CONFIG = AttentionConfig(COLUMNS, HEADS, True, 0.2)
WIDTH = COLUMNS + 2 * HEADS
ENTRIES = SparseFeatures.from_dense(torch.eye(NODES, 5))
SEED = torch.tensor([3, 2**32 - 5])
SCALES = Scales(*torch.rand(5, NODES, generator=torch.Generator().manual_seed(1)) + 0.5)


def propagate(x, labels, add):
    return ops.propagate_messages(GRAPH, x, labels, add, SCALES, update_labels=True)


def attend(x, labels, label_target, add):
    output = ops.attend(GRAPH, x, labels, label_target, add, SCALES, CONFIG, update_labels=True)
    # a node without neighbors has minus infinity there, whose derivatives no difference can find
    return output.nodes, output.log_denominator[GRAPH.adjacency.degree > 0], output.labels


def add_labels(x, labels):
    return (ops.add_labels_(GRAPH.to_nodes, x.clone(), labels),)


def norm_act_dropout(kind, real=None):
    def call(x, weight, bias):
        # the parameters that are differentiated in the place of those of the module
        norm = kind(COLUMNS, dtype=x.dtype)
        del norm.weight, norm.bias
        norm.weight, norm.bias = weight, bias
        out = norm_act_dropout_by_seed(x, norm, 0.3, SEED, real)
        # nothing is said of the others
        return (out if real is None else out[real],)

    return call


NODE_ROWS, LABEL_ROWS = (NODES, COLUMNS), (CLASSES, COLUMNS)
OPERATIONS = {
    "propagate": (propagate, [NODE_ROWS, LABEL_ROWS, NODE_ROWS]),
    "attend": (attend, [(NODES, WIDTH), LABEL_ROWS, (CLASSES, HEADS), NODE_ROWS]),
    "class_sum": (lambda x: (ops.class_sum(GRAPH.to_labels, x),), [NODE_ROWS]),
    "label_gather": (lambda x: (ops.label_gather(GRAPH.to_nodes, x),), [LABEL_ROWS]),
    "add_labels": (add_labels, [NODE_ROWS, LABEL_ROWS]),
    "project_entries": (
        lambda weight: (ops.project_entries(ENTRIES.rows, ENTRIES.rows.weight, weight),),
        [(COLUMNS, 5)],
    ),
    "dropout": (lambda x: run(Dropout(0.3, SEED), x), [NODE_ROWS]),
    "act_dropout": (lambda x: run(ActDropout(0.3, SEED), x), [NODE_ROWS]),
    "batch_norm": (norm_act_dropout(torch.nn.BatchNorm1d), [NODE_ROWS, (COLUMNS,), (COLUMNS,)]),
    "batch_norm_of_real_rows": (
        norm_act_dropout(torch.nn.BatchNorm1d, torch.arange(NODES) < 5),
        [NODE_ROWS, (COLUMNS,), (COLUMNS,)],
    ),
    "layer_norm": (norm_act_dropout(torch.nn.LayerNorm), [NODE_ROWS, (COLUMNS,), (COLUMNS,)]),
}


def make_inputs(shapes, dtype=torch.float64):
    generator = torch.Generator().manual_seed(2)
    numbers = [torch.randn(shape, generator=generator, dtype=torch.float64).float() for shape in shapes]
    return [x.to(dtype).requires_grad_() for x in numbers]


@pytest.mark.parametrize("name", OPERATIONS)
def test_derivatives_in_double_precision_are_those_of_finite_differences(name):
    operation, shapes = OPERATIONS[name]
    inputs = make_inputs(shapes)
    assert gradcheck(operation, inputs)
    assert gradgradcheck(operation, inputs)


def first_and_second(operation, inputs):
    """The gradient of a number, and that of the squared norm of this gradient."""
    outputs = operation(*inputs)
    total = sum((out * out.detach().cos() + out.square()).sum() for out in outputs)
    first = torch.autograd.grad(total, inputs, create_graph=True)
    penalty = sum(gradient.square().sum() for gradient in first)
    second = torch.autograd.grad(penalty, inputs, allow_unused=True)
    return [*first, *(torch.zeros_like(x) if g is None else g for g, x in zip(second, inputs, strict=True))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_first_and_second_derivatives_in_single_precision_are_those_in_double_precision(name, form):
    operation, shapes = OPERATIONS[name]
    expected = first_and_second(operation, make_inputs(shapes))
    if form[1] != "cpu":
        pytest.skip("the graph is on the CPU")
    with using(form[0]):
        found = first_and_second(operation, make_inputs(shapes, torch.float32))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-3, atol=1e-3)


def test_the_same_tensor_as_two_inputs_has_the_sum_of_both_second_derivatives():
    def twice(x):
        return ops.propagate_messages(GRAPH, x, None, x, SCALES, update_labels=False)[:1]

    expected = first_and_second(twice, make_inputs([NODE_ROWS]))
    found = first_and_second(twice, make_inputs([NODE_ROWS], torch.float32))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-4)


def test_a_second_derivative_leaves_the_running_statistics_as_they_are():
    norm = torch.nn.BatchNorm1d(COLUMNS)
    (x,) = make_inputs([NODE_ROWS], torch.float32)
    out = norm_act_dropout_by_seed(x, norm, 0.3, SEED)
    before = copy.deepcopy(norm.state_dict())
    (gradient,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
    gradient.square().sum().backward()
    torch.testing.assert_close(norm.state_dict(), before, rtol=0, atol=0)


@pytest.mark.parametrize("name", OPERATIONS)
def test_torch_func_grad_is_the_gradient(name):
    operation, shapes = OPERATIONS[name]
    inputs = make_inputs(shapes, torch.float32)

    def total(*inputs):
        return sum(out.square().sum() for out in operation(*inputs))

    found = torch.func.grad(total, tuple(range(len(inputs))))(*(x.detach() for x in inputs))
    torch.testing.assert_close(found, torch.autograd.grad(total(*inputs), inputs), rtol=1e-4, atol=1e-4)


def test_vmap_is_refused_in_one_sentence():
    with pytest.raises(InputError, match=r"cannot be mapped by torch.vmap"):
        torch.func.vmap(lambda x: ops.class_sum(GRAPH.to_labels, x))(torch.randn(2, *NODE_ROWS, requires_grad=True))


@pytest.mark.parametrize("name", OPERATIONS)
def test_autocast_around_forward_and_backward_changes_no_more_than_a_rounding(name):
    operation, shapes = OPERATIONS[name]
    inputs = make_inputs(shapes, torch.float32)
    expected = torch.autograd.grad(sum(out.square().sum() for out in operation(*inputs)), inputs)
    with torch.autocast("cpu", torch.bfloat16):
        # a product is in bf16, all else in single precision, as in a layer
        first = inputs[0] @ torch.eye(inputs[0].size(1))
        assert first.dtype == torch.bfloat16
        total = sum(out.float().square().sum() for out in operation(first, *inputs[1:]))
        found = torch.autograd.grad(total, inputs)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.1, atol=0.1 * max(1.0, float(theirs.abs().max())))


def test_compiled_code_may_call_operations():
    # compiled once for all of them: tracing takes seconds
    names = ["propagate", "attend", "dropout", "batch_norm"]
    inputs = [make_inputs(OPERATIONS[name][1], torch.float32) for name in names]
    flat = [x for part in inputs for x in part]

    def total(*inputs):
        remaining, sums = list(inputs), 0.0
        for name in names:
            operation, shapes = OPERATIONS[name]
            part, remaining = remaining[: len(shapes)], remaining[len(shapes) :]
            sums = sums + sum(out.square().sum() for out in operation(*(2 * x for x in part)))
        return sums

    expected = torch.autograd.grad(total(*flat), flat)
    found = torch.autograd.grad(torch.compile(total, backend="aot_eager")(*flat), flat)
    torch.testing.assert_close(found, expected)


def test_training_follows_an_evaluation_in_inference_mode():
    (x,) = make_inputs([NODE_ROWS], torch.float32)
    graph = with_labels(random_graph(NODES, 15, torch.float32, weighted=False), CLASSES)
    with torch.inference_mode():
        ops.propagate_messages(graph, x, None, None, Scales(), update_labels=True)
    nodes, sums = ops.propagate_messages(graph, x, None, None, Scales(), update_labels=True)
    assert torch.isfinite(torch.autograd.grad(nodes.sum() + sums.sum(), x)[0]).all()


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_reference_backend_gives_the_same_gradients(name, monkeypatch):
    operation, shapes = OPERATIONS[name]

    def once():
        inputs = make_inputs(shapes, torch.float32)
        outputs = operation(*inputs)
        return [*outputs, *gradients(outputs, inputs)]

    by_kernels = once()
    monkeypatch.setenv("LEGNN_BACKEND", "reference")
    for ours, theirs in zip(by_kernels, once(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", [form for form in FORMS if GPU or form.id == "numba"])
def test_the_same_input_gives_the_same_bits(form):
    # in the interpreter, where one program runs after the other, this would say nothing
    implementation, device = form
    graph = to(with_labels(hub(10_000, torch.float32, weighted=False)), device)
    x = torch.randn(graph.num_nodes, 20, device=device, requires_grad=True)
    rows = torch.randn(5, 12, device=device, requires_grad=True)
    target = torch.randn(5, 3, device=device, requires_grad=True)
    config = AttentionConfig(12, 3, True, 0.2)

    def once():
        norm = torch.nn.BatchNorm1d(12).to(device)
        with using(implementation):
            out = ops.attend(graph, x, rows, target, None, Scales(), config, update_labels=True)
            nodes = norm_act_dropout_by_seed(out.nodes, norm, 0.5, SEED.to(device))
        return [nodes, out.labels, *gradients([nodes, out.labels], [x, rows, target])]

    for first, second in zip(once(), once(), strict=True):
        assert torch.equal(first, second)


def test_the_number_of_threads_does_not_change_a_bit():
    graph = with_labels(random_graph(3000, 30_000, torch.float32, weighted=False))
    x, scores = torch.randn(3000, 64, requires_grad=True), torch.randn(3000, 72, requires_grad=True)
    config = AttentionConfig(64, 4, True, 0.2)

    def once():
        nodes, sums = ops.propagate_messages(graph, x, None, None, Scales(), update_labels=True)
        out = norm_act_dropout_by_seed(nodes, torch.nn.BatchNorm1d(64), 0.5, SEED)
        attended = ops.attend(graph, scores, None, None, None, Scales(), config, update_labels=True)
        outputs = [nodes, sums, out, attended.nodes, attended.labels]
        return [*outputs, *gradients(outputs, [x, scores])]

    found, threads = [], torch.get_num_threads()
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        found.append(once())
    torch.set_num_threads(threads)
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))
