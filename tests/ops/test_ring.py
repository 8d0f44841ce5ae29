"""Rows that are written in turn: the kernels of a GPU leave what plain PyTorch leaves."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS

from legnn.ops import select
from legnn.ops.ring import RowWriter
from legnn.ops.ring.reference import RowCopy

SHAPES = st.lists(st.sampled_from([(), (1,), (0,), (3, 5), (2049,), (40, 130)]), min_size=1, max_size=5)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None)
@given(
    tensors=st.dictionaries(st.sampled_from([torch.float32, torch.int64, torch.float64]), SHAPES, min_size=1),
    rows=st.integers(1, 4),
    columns=st.integers(1, 9),
    times=st.integers(0, 6),
    odd=st.sampled_from([None, "turned", "short"]),
)
def test_every_row_is_a_copy_of_all_tensors_when_it_was_written(form, tensors, rows, columns, times, odd):
    kernels, device = form
    sources = {dtype: [torch.zeros(shape, device=device).to(dtype) for shape in tensors[dtype]] for dtype in tensors}
    if odd == "turned":
        sources[next(iter(sources))].append(torch.zeros(3, 4, dtype=next(iter(sources)), device=device).T)
    elif odd == "short":
        sources[torch.bfloat16] = [torch.zeros(3, dtype=torch.bfloat16, device=device)]
    copies = [
        RowCopy(some, torch.zeros(rows, sum(one.numel() for one in some), dtype=dtype, device=device))
        for dtype, some in sources.items()
    ]
    metrics = torch.zeros(rows, columns, dtype=torch.double, device=device)
    row = torch.zeros(1, dtype=torch.long, device=device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "kernels_for_device", lambda device: kernels)
        writer = RowWriter(copies, metrics, row)
    expected = [(torch.zeros_like(one.into), metrics.clone()) for one in copies]
    for time in range(times):
        given_metrics = torch.randn(columns, dtype=torch.double, device=device)
        for copy, (into, numbers) in zip(copies, expected, strict=True):
            for source in copy.sources:
                source.copy_(torch.randint(1000, source.shape))
            into[time % rows] = torch.cat([source.reshape(-1) for source in copy.sources])
            numbers[time % rows] = given_metrics
        writer.write(given_metrics)
        assert int(row) == (time + 1) % rows
        for copy, (into, numbers) in zip(copies, expected, strict=True):
            assert torch.equal(copy.into, into)
            assert torch.equal(metrics, numbers)
