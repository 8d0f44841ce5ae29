"""Norm, activation and dropout: the compiled forms equal plain PyTorch, and dropout keeps what it should."""

import copy

import numpy as np
import pytest
import torch
from tests.ops.forms import FORMS, TOLERANCE, assert_equal, pair, using
from tests.ops.graphs import gradients

from legnn.ops.autograd import run
from legnn.ops.norm_act_dropout import Dropout, norm_act_dropout_by_seed, reference

NORMS = {"none": lambda channels: None, "batch": torch.nn.BatchNorm1d, "layer": torch.nn.LayerNorm}


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_dropout_keeps_what_it_should_and_no_seed_is_like_another(rate):
    seeds = [torch.tensor(words) for words in ([0, 0], [1, 0], [0, 1], [2**32 - 1, 12345])]
    masks = [reference.keep_mask(400, 300, rate, seed) for seed in seeds]
    for mask in masks:
        assert abs(float(mask.double().mean()) - (1 - rate)) < 0.005
        # neither a row nor a column is favored: 6 standard deviations for each of them
        for axis, size in ((0, 400), (1, 300)):
            spread = 6 * (rate * (1 - rate) / size) ** 0.5
            assert float((mask.double().mean(axis) - (1 - rate)).abs().max()) <= spread
    if rate == 0.5:
        for one, mask in enumerate(masks):
            for other in masks[:one]:
                assert abs(float((mask == other).double().mean()) - 0.5) < 0.01
            # nor do neighbors in a row or in a column decide together
            assert abs(float((mask[:, 1:] == mask[:, :-1]).double().mean()) - 0.5) < 0.01
            assert abs(float((mask[1:] == mask[:-1]).double().mean()) - 0.5) < 0.01


def test_dropout_keeps_the_expectation():
    x = torch.rand(200, 300)
    out = reference.drop(x, 0.25, torch.tensor([7, 9]))
    kept = out != 0
    torch.testing.assert_close(out[kept], x[kept] / 0.75)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_drops_the_same_entries(form):
    kernels, device = form
    x = torch.randn(70, 133)
    seed = torch.tensor([2**32 - 1, 77])
    with using(kernels):
        (found,) = run(Dropout(0.4, seed.to(device)), x.to(device))
    torch.testing.assert_close(found.cpu(), reference.drop(x, 0.4, seed))


@pytest.mark.parametrize("form", FORMS)
def test_the_gradient_of_dropout_is_dropped_where_the_entries_are(form):
    kernels, device = form
    x, fast_x = pair(30, 17, dtype=torch.float32, device=device)
    seed = torch.tensor([5, 2**31])
    plain = reference.drop(x, 0.4, seed)
    with using(kernels):
        (fast,) = run(Dropout(0.4, seed.to(device)), fast_x)
    assert_equal([fast], [plain], torch.float32)
    assert_equal(gradients([fast], [fast_x]), gradients([plain], [x]), torch.float32)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize(("nodes", "channels"), [(2, 1), (63, 60), (300, 7), (20, 139)])
def test_norm_act_dropout(form, nodes, channels, kind, dtype):
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
    plain = reference.apply_norm_act_dropout(x, norm, 0.3, seed)
    with using(kernels):
        fast = norm_act_dropout_by_seed(fast_x, fast_norm, 0.3, seed.to(device))
    assert_equal([fast], [plain], dtype)
    plain_wrt = [x, *([] if norm is None else norm.parameters())]
    fast_wrt = [fast_x, *([] if fast_norm is None else fast_norm.parameters())]
    for ours, theirs in zip(gradients([fast], fast_wrt), gradients([plain], plain_wrt), strict=True):
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
    with torch.no_grad(), using(kernels):
        plain = reference.apply_norm_act_dropout(x, norm, 0.3, None)
        fast = norm_act_dropout_by_seed(fast_x, fast_norm, 0.3, None)
    assert_equal([fast], [plain], dtype)


@pytest.mark.parametrize("form", FORMS)
def test_norm_act_dropout_of_a_large_matrix(form, monkeypatch):
    monkeypatch.setattr("legnn.ops.norm_act_dropout.gpu.LARGE", 100)
    monkeypatch.setattr("legnn.ops.norm_act_dropout.gpu.MANY_ROWS", 80)
    test_norm_act_dropout(form, 100, 7, "batch", torch.float32)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_padding_rows_count_in_no_statistics_and_get_no_gradient(form, dtype, dropout):
    kernels, device = form
    x, fast_x = pair(70, 21, dtype=dtype, device=device)
    real = torch.rand(70, generator=torch.Generator().manual_seed(0)) < 0.6
    seed = torch.tensor([3, 2**32 - 5]) if dropout else None
    norm = torch.nn.BatchNorm1d(21)
    fast_norm = copy.deepcopy(norm).to(device)
    norm = norm.double()
    plain = reference.apply_norm_act_dropout(x, norm, dropout, seed, real)
    with using(kernels):
        fast = norm_act_dropout_by_seed(
            fast_x, fast_norm, dropout, None if seed is None else seed.to(device), real.to(device)
        )
    # nothing is said of the others
    fast, plain = fast[real.to(device)], plain[real]
    assert_equal([fast], [plain], dtype)
    found = gradients([fast], [fast_x, *fast_norm.parameters()])
    for ours, theirs in zip(found, gradients([plain], [x, *norm.parameters()]), strict=True):
        size = max(1.0, float(theirs.abs().max()))
        away = (ours.cpu().double() - theirs.double()).abs() / size > TOLERANCE[dtype]["atol"]
        # rounding may take a number across zero, where the activation's gradient jumps
        assert float(away.double().mean()) <= (0 if dtype == torch.float32 else 0.01)
    assert not found[0][~real.to(device)].any()
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(fast_norm, name).cpu().double(), getattr(norm, name), **TOLERANCE[dtype])


@pytest.mark.parametrize("channels", [8, 16, 24])
def test_a_layer_norm_does_not_depend_on_where_memory_lies(channels):
    # one loop that sums and writes gave other bits in one of a hundred runs: it is compiled with and without vectors
    generator, seen = np.random.default_rng(0), set()
    norm, seed = torch.nn.LayerNorm(channels), torch.tensor([3, 5])
    torch.nn.init.uniform_(norm.weight)
    x, up = torch.randn(2, 7, channels)
    for _ in range(1500):
        between = [np.empty(size, np.float32) for size in generator.integers(1, 200, size=generator.integers(12))]
        here = x.clone().requires_grad_()
        out = norm_act_dropout_by_seed(here, norm, 0.3, seed)
        found = [out.detach(), *gradients([out * up.clone()], [here, norm.weight, norm.bias])]
        seen.add(b"".join(one.numpy().tobytes() for one in found))
        del between
    assert len(seen) == 1
