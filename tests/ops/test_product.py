"""Products of few rows: the kernel of a GPU equals PyTorch's, whatever the strides."""

import pytest
import torch
from tests.ops.forms import GPU

DEVICE = "cuda" if GPU else "cpu"


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 1, 1), (7, 70, 20), (40, 33, 100), (64, 64, 64)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_of_few_rows_is_padded_with_zeros(rows, inner, columns, dtype, turned):
    from legnn.ops.product.triton_kernels import multiply

    # a product has padding columns beyond those that are multiplied
    a = torch.randn(rows, inner + 3, device=DEVICE).to(dtype)
    b = torch.randn(columns, inner, device=DEVICE).T if turned else torch.randn(inner, columns, device=DEVICE)
    found = multiply(a, b, a, columns + 4)
    expected = a[:, :inner].double() @ b.to(dtype).double()
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 0.2}
    torch.testing.assert_close(found[:, :columns].double(), expected, **tolerance)
    assert not found[:, columns:].any()
    assert found.dtype == dtype


@pytest.mark.parametrize(("count", "rows", "columns"), [(1, 1, 1), (7, 70, 20), (40, 33, 150), (64, 64, 64)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("turned", [False, True])
def test_the_gradient_of_a_weight_is_a_sum_over_few_rows(count, rows, columns, dtype, turned):
    from legnn.ops.product.triton_kernels import weight_gradient

    # both may have padding columns, which are not read
    a = torch.randn(count, rows + 3, device=DEVICE).to(dtype)
    b = (
        torch.randn(columns + 4, count, device=DEVICE).to(dtype).T
        if turned
        else torch.randn(count, columns, device=DEVICE).to(dtype)
    )
    found = weight_gradient(a, b, torch.empty(rows, columns, device=DEVICE))
    expected = a[:, :rows].T.double() @ b[:, :columns].double()
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
    assert found.dtype == torch.float32
