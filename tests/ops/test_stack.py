"""A few numbers as one vector: the kernel of a GPU equals plain PyTorch."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS, GPU

from legnn.ops import select
from legnn.ops.stack import MOST, reference, stack_scalars

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32]
NUMBERS = st.one_of(
    st.sampled_from([0.0, math.nan, 1.0]), st.tuples(st.sampled_from(DTYPES), st.integers(-1000, 1000), st.booleans())
)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10 if GPU else 40, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=MOST + 2))
def test_numbers_of_the_device_and_of_the_host_become_one_vector(form, numbers):
    kernels, device = form[0], torch.device(form[1])

    def value(number):
        if isinstance(number, float):
            return number
        dtype, found, is_part = number
        # a number of its own, or one of several
        return torch.tensor([0, found, 0] if is_part else found, dtype=dtype, device=device)[[1] if is_part else ...]

    values = [value(number) for number in numbers]
    values = [one.reshape(()) if isinstance(one, torch.Tensor) else one for one in values]
    expected = [float(one) for one in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "kernels_for_device", lambda device: kernels)
        found = stack_scalars(values, device)
    assert found.dtype == torch.double
    assert found.device.type == device.type
    torch.testing.assert_close(found.cpu(), torch.tensor(expected, dtype=torch.double), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(reference.stack_scalars(values, device).nan_to_num(-1), found.nan_to_num(-1))
