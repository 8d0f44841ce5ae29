"""Products in bf16 on a CPU: factors are rounded where that was asked for and saves time, and gradients with them."""

import pytest
import torch

from legnn.nn.products import product, product_and_pass
from legnn.ops.runtime import bf16
from legnn.training import matrix_products

ROWS, IN, OUT = 30, 12, 20


@pytest.fixture(autouse=True)
def processor(monkeypatch):
    """One with instructions for bf16 that PyTorch does not use by itself; products of any size take time."""
    monkeypatch.setattr(bf16, "WORTH_ROUNDING", 0)
    monkeypatch.setattr(bf16, "cpu_multiplies_bf16", lambda: True)
    monkeypatch.setattr(bf16, "_rounds_by_itself", lambda: False)


def _factors():
    generator = torch.Generator().manual_seed(0)
    shapes = [(ROWS, IN), (OUT, IN), (ROWS, OUT), (ROWS, OUT)]
    return [torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes]


def _rounded(x):
    return x.detach().bfloat16()


@pytest.mark.parametrize("rows", [None, 0, 1, 17, ROWS])
@pytest.mark.parametrize("adds", [False, True])
def test_values_and_gradients_are_those_of_rounded_factors(rows, adds):
    x, weight, add, up = _factors()
    if rows is not None:
        add, up = add[:rows].detach().requires_grad_(), up[:rows]
    with matrix_products("medium"):
        out, passed = product_and_pass(x, weight, add if adds else None, rows=rows)
        # one more reader of what was passed on, into whose gradient that of the product is added
        torch.autograd.backward([out, passed], [up, 2 * torch.ones_like(x)])
    assert out.dtype == torch.float32
    factor = _rounded(x)[:rows]
    expected = (factor @ _rounded(weight).T).float() + (add.detach() if adds else 0)
    assert torch.equal(out, expected)
    d_x = 2 * torch.ones_like(x)
    d_x[: factor.size(0)] += _rounded(up) @ _rounded(weight)
    assert torch.equal(x.grad, d_x)
    assert torch.equal(weight.grad, (_rounded(up).T @ factor).float())
    if adds:
        assert torch.equal(add.grad, up)


def test_a_product_without_another_reader_has_the_same_gradient():
    x, weight, _, up = _factors()
    with matrix_products("medium"):
        product(x, weight).backward(up)
    assert torch.equal(x.grad, (_rounded(up) @ _rounded(weight)).float())


@pytest.mark.parametrize("why", ["fp32", "small", "double", "no instructions", "rounded by PyTorch"])
def test_nothing_is_rounded_where_nobody_asks_or_nothing_is_gained(why, monkeypatch):
    x, weight, _, _ = _factors()
    if why == "small":
        monkeypatch.setattr(bf16, "WORTH_ROUNDING", ROWS * IN * OUT + 1)
    elif why == "double":
        x, weight = x.double(), weight.double()
    elif why == "no instructions":
        monkeypatch.setattr(bf16, "cpu_multiplies_bf16", lambda: False)
    elif why == "rounded by PyTorch":
        monkeypatch.setattr(bf16, "_rounds_by_itself", lambda: True)
    with matrix_products("highest" if why == "fp32" else "medium"):
        assert not bf16.is_rounded(x, OUT)


def test_rounding_costs_little():
    x, weight, _, _ = _factors()
    with matrix_products("medium"):
        rounded = product(x, weight)
    torch.testing.assert_close(rounded, x @ weight.T, rtol=0.02, atol=0.05)
    assert not torch.equal(rounded, x @ weight.T)
