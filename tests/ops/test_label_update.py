"""What follows the labels' layer: the kernels of a GPU equal plain PyTorch, values and gradients."""

import pytest
import torch
from tests.ops.forms import FORMS, assert_equal, pair
from tests.ops.graphs import gradients

from legnn.ops.label_update.autograd import LabelUpdate
from legnn.ops.norm_act_dropout import reference

KERNELS = [form for form in FORMS if form.id.startswith("triton")]


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("labels", "columns"), [(1, 3), (7, 20), (40, 33)])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("dropped", [False, True])
def test_residual_norm_activation_and_dropout_of_labels(form, labels, columns, dtype, added, dropped):
    device = form[1]
    x, fast_x = pair(labels, columns, dtype=dtype, device=device)
    # on a GPU a product has padding columns
    residual, fast_residual = pair(labels, columns + 4, dtype=dtype, device=device)
    norm = torch.nn.LayerNorm(columns).double()
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    weight, bias = (one.detach().to(device, torch.float32).requires_grad_() for one in (norm.weight, norm.bias))
    seed = torch.tensor([3, 4]) if dropped else None
    plain = reference.apply_norm_act_dropout(x + residual[:, :columns] if added else x, norm, 0.3, seed)
    fast = LabelUpdate.apply(
        fast_x, fast_residual if added else None, weight, bias, norm.eps, 0.3, None if seed is None else seed.to(device)
    )
    assert_equal([fast], [plain], dtype)
    ours = gradients([fast], [fast_x, fast_residual, weight, bias])
    assert_equal(ours, gradients([plain], [x, residual, norm.weight, norm.bias]), dtype)
