"""The most probable class: the kernel of a GPU equals plain PyTorch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS, GPU, using

from legnn.ops import most_probable


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15 if GPU else 60, deadline=None)
@given(
    rows=st.integers(0, 200),
    classes=st.sampled_from([1, 2, 7, 8, 100]),
    share=st.floats(0, 1),
    selected=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 1000),
)
def test_the_largest_probability_and_the_first_class_that_has_it(form, rows, classes, share, selected, dtype, seed):
    kernels, device = form
    random = torch.Generator().manual_seed(seed)
    # few different numbers, so that many are equal, in a wider matrix
    logits = (torch.randn(rows, classes + 3, generator=random) * 2).round().to(dtype)[:, :classes]
    some = torch.randperm(rows, generator=random)[: round(share * rows)] if selected else None
    with using(kernels):
        p, y = most_probable(logits.to(device), None if some is None else some.to(device))
    x = (logits if some is None else logits[some]).double()
    torch.testing.assert_close(p.cpu().double(), torch.softmax(x, -1).amax(-1), rtol=1e-6, atol=0)
    assert torch.equal(y.cpu(), x.argmax(-1))
    assert (p.dtype, y.dtype) == (torch.float32, torch.long)
