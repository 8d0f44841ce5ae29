"""The cross-entropy of some nodes: the kernels of a GPU equal plain PyTorch, values and gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS, GPU, using

from legnn.ops import cross_entropy as package
from legnn.ops.cross_entropy import mean_cross_entropy, reference, weighted_cross_entropy
from legnn.ops.select import NUMBA, TRITON

KERNELS = [form for form in FORMS if form.id.startswith("triton")]
DEVICE = "cuda" if GPU else "cpu"


def launch(logits, y, nodes, divisor, class_weight=None):
    """By the kernels of a GPU: the result and the gradient of the logits times 3."""
    logits = logits.detach().to(DEVICE).requires_grad_()
    rest = [None if one is None else one.to(DEVICE) for one in (y, nodes, class_weight)]
    with using(TRITON):
        found = mean_cross_entropy(logits, rest[0], rest[1], divisor, rest[2])
    (3 * found.loss).backward()
    return found, logits.grad


def plain(logits, y, nodes, divisor, class_weight=None):
    """The same in double precision, by the reference."""
    logits = logits.detach().double().requires_grad_()
    found = reference.mean_cross_entropy(logits, y, nodes, divisor, class_weight)
    (3 * found.loss).backward()
    return found, logits.grad


def assert_same(ours, expected, dtype=torch.float32):
    (found, gradient), (truth, slope) = ours, expected
    near = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(found.loss.double().cpu(), truth.loss.double(), equal_nan=True, **near)
    torch.testing.assert_close(found.sums.cpu(), truth.sums, **near)
    assert found.sums[1] == truth.sums[1]
    torch.testing.assert_close(found.accuracy.double().cpu(), truth.accuracy.double(), equal_nan=True, **near)
    coarse = {"rtol": 1e-2, "atol": 1e-3} if dtype == torch.bfloat16 else near
    torch.testing.assert_close(gradient.double().cpu(), slope, equal_nan=True, **coarse)
    assert gradient.dtype == dtype


@pytest.mark.parametrize("form", KERNELS)
@settings(max_examples=15 if GPU else 60, deadline=None)
@given(
    rows=st.integers(1, 200),
    classes=st.sampled_from([1, 2, 3, 7, 8, 40, 100]),
    share=st.floats(0, 1),
    selected=st.booleans(),
    weighted=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 1000),
)
def test_loss_accuracy_and_gradient_are_those_of_pytorch(form, rows, classes, share, selected, weighted, dtype, seed):
    random = torch.Generator().manual_seed(seed)
    # few different numbers, so that many are equal
    logits = (torch.randn(rows, classes, generator=random) * 2).round().to(dtype)
    y = torch.randint(classes, (rows,), generator=random)
    nodes = torch.randperm(rows, generator=random)[: round(share * rows)] if selected else None
    weight = torch.rand(classes, generator=random) if weighted else None
    arguments = logits, y, nodes, 5.0, weight
    assert_same(launch(*arguments), plain(*arguments), dtype)


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("classes", [7, 16])
def test_the_logits_may_be_columns_of_a_wider_matrix_or_turned(form, classes):
    y, nodes = torch.randint(classes, (50,)), torch.randperm(50)[:20]
    wide = torch.randn(50, 24)
    for logits in (wide[:, :classes], torch.randn(classes, 50).T):
        assert_same(launch(logits, y, nodes, 20.0), plain(logits, y, nodes, 20.0))
    given_wide = wide.to(DEVICE).requires_grad_()
    with using(TRITON):
        loss = mean_cross_entropy(given_wide[:, :classes], y.to(DEVICE), nodes.to(DEVICE), 20.0).loss
    loss.backward()
    assert not given_wide.grad[:, classes:].any()


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("selected", [False, True])
def test_other_nodes_have_a_gradient_of_zero_and_many_rows_are_summed(form, selected, monkeypatch):
    from legnn.ops.cross_entropy import triton_kernels

    monkeypatch.setattr(triton_kernels, "PROGRAMS", 4)
    logits, y = torch.randn(2000, 7), torch.randint(7, (2000,))
    nodes = torch.randperm(2000)[:1500] if selected else None
    ours = launch(logits, y, nodes, 1500.0)
    assert_same(ours, plain(logits, y, nodes, 1500.0))
    if nodes is not None:
        others = torch.ones(2000, dtype=torch.bool).index_fill(0, nodes, False)
        assert not ours[1].cpu()[others].any()


@pytest.mark.parametrize("form", KERNELS)
def test_of_equal_logits_the_first_is_the_prediction(form):
    logits = torch.tensor([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
    for y, right in (([0, 1, 0], 3), ([1, 2, 2], 0), ([2, 1, 1], 1)):
        found, _ = launch(logits, torch.tensor(y), None, 3.0)
        assert found.sums[1] == right
        assert found.accuracy.item() == pytest.approx(right / 3)


@pytest.mark.parametrize("form", KERNELS)
def test_large_logits_do_not_overflow_and_what_is_no_number_is_not_hidden(form):
    y = torch.tensor([0, 1, 2])
    large = torch.tensor([[1e4, 0.0, -1e4], [1e30, 0.0, 0.0], [0.0, -math.inf, 0.0]])
    assert_same(launch(large, y, None, 3.0), plain(large, y, None, 3.0))
    broken = torch.tensor([[0.0, math.nan, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found, _ = launch(broken, y, None, 3.0)
    assert found.loss.isnan()
    assert found.sums[1] == 2, "PyTorch takes what is not a number for the largest"


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("nodes", [0, 1])
def test_no_nodes_have_the_loss_zero_and_one_has_its_own(form, nodes):
    logits, y, some = torch.randn(4, 3), torch.tensor([0, 1, 2, 0]), torch.arange(nodes)
    ours = launch(logits, y, some, 2.0)
    assert_same(ours, plain(logits, y, some, 2.0))
    if not nodes:
        assert ours[0].loss == 0
        assert ours[0].accuracy.isnan()
        assert not ours[1].any()
    # the mean of no numbers
    assert launch(logits, y, some[:0], 0.0)[0].loss.isnan()


@pytest.mark.parametrize("form", KERNELS)
def test_thousands_of_classes_and_more_than_a_program_holds(form, monkeypatch):
    logits, y, nodes = torch.randn(5, 3000), torch.randint(3000, (5,)), torch.tensor([4, 1])
    assert_same(launch(logits, y, nodes, 2.0), plain(logits, y, nodes, 2.0))
    monkeypatch.setattr(package, "MOST_CLASSES", 2999)
    monkeypatch.setattr(package, "CrossEntropyFunction", None)
    assert_same(launch(logits, y, nodes, 2.0), plain(logits, y, nodes, 2.0))


def test_a_cpu_takes_pytorchs_operations_whatever_the_precision():
    y = torch.randint(3, (20,))
    for dtype in (torch.float32, torch.double):
        logits = torch.randn(20, 3, dtype=dtype, requires_grad=True)
        with using(NUMBA):
            found = mean_cross_entropy(logits, y, None, 20.0)
        assert torch.equal(found.loss, torch.nn.functional.cross_entropy(logits, y, reduction="none").sum() / 20)
        assert found.loss.dtype == dtype
        assert found.accuracy == (logits.argmax(-1) == y).float().mean()


@pytest.mark.parametrize("form", KERNELS)
def test_without_gradients_nothing_is_kept(form):
    logits, y = torch.randn(6, 3, device=DEVICE, requires_grad=True), torch.zeros(6, dtype=torch.long, device=DEVICE)
    with torch.no_grad(), using(TRITON):
        found = mean_cross_entropy(logits, y, None, 6.0)
    assert not any(one.requires_grad for one in found)
    with using(TRITON):
        found = mean_cross_entropy(logits, y, None, 6.0)
    assert [one.requires_grad for one in found] == [True, False, False]


@pytest.mark.parametrize("form", KERNELS)
@settings(max_examples=10 if GPU else 30, deadline=None)
@given(
    rows=st.integers(1, 200),
    classes=st.sampled_from([2, 7, 40]),
    share=st.floats(0, 1),
    selected=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_weighted_sum_and_its_gradient_are_those_of_pytorch(form, rows, classes, share, selected, seed):
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, classes, generator=random)
    some = torch.randperm(rows, generator=random)[: round(share * rows)] if selected else None
    number = rows if some is None else some.numel()
    y = torch.randint(classes, (number,), generator=random)
    # some of the nodes count nothing
    weight = torch.rand(number, generator=random).sub(0.3).clamp(min=0)
    slow = logits.double().requires_grad_()
    expected = reference.weighted_cross_entropy(slow, y, some, weight)
    fast = logits.to(DEVICE).requires_grad_()
    with using(TRITON):
        found = weighted_cross_entropy(fast, y.to(DEVICE), None if some is None else some.to(DEVICE), weight.to(DEVICE))
    torch.testing.assert_close(found.double().cpu(), expected, rtol=1e-5, atol=1e-6)
    (2 * found).backward()
    (2 * expected).backward()
    torch.testing.assert_close(fast.grad.double().cpu(), slow.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", KERNELS)
def test_classes_and_weights_may_be_columns(form):
    logits, pairs, weight = torch.randn(9, 4), torch.randint(4, (9, 2)), torch.rand(9, 2)
    y, some = pairs[:, 1], torch.arange(9)
    assert_same(launch(logits, y, some, 9.0), plain(logits, y, some, 9.0))
    with using(TRITON):
        found = weighted_cross_entropy(*(one.to(DEVICE) for one in (logits, y, some, weight[:, 0])))
    torch.testing.assert_close(found.cpu(), reference.weighted_cross_entropy(logits, y, some, weight[:, 0]))
