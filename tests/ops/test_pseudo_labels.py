"""How many pseudo labels are right: the kernel of a GPU counts as plain PyTorch does."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS

from legnn.ops import select
from legnn.ops.pseudo_labels import count_known_and_right


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40, deadline=None)
@given(nodes=st.integers(0, 3000), share=st.floats(0, 1), selected=st.booleans(), seed=st.integers(0, 1000))
def test_those_are_right_that_are_chosen_and_whose_known_class_it_is(form, nodes, share, selected, seed):
    kernels, device = form
    random = torch.Generator().manual_seed(seed)
    # -1 where the class is not known
    truth = torch.randint(-1, 3, (nodes,), generator=random)
    rows = torch.randperm(nodes, generator=random)[: round(share * nodes)] if selected else torch.arange(nodes)
    y = torch.randint(3, (rows.numel(),), generator=random)
    chosen = torch.rand(rows.numel(), generator=random) < 0.6
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "kernels_for_device", lambda device: kernels)
        arguments = [one.to(device) for one in (y, chosen, truth, rows)]
        known, right = count_known_and_right(*arguments if selected else arguments[:3])
    expected = [(int(a), int(b)) for a, b, is_chosen in zip(y, truth[rows], chosen, strict=True) if is_chosen]
    assert int(known) == sum(b >= 0 for _, b in expected)
    assert int(right) == sum(a == b for a, b in expected)
