"""Calibration: accuracy and confidence by bins of the confidence, and the calibration error."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from legnn.analysis.calibration import reliability
from legnn.errors import InputError
from legnn.training import METRICS


@given(st.lists(st.tuples(st.floats(0.5, 1), st.booleans()), min_size=1))
def test_the_calibration_error_is_the_mean_gap_of_the_bins(nodes):
    table = reliability(*map(list, zip(*nodes, strict=True)))
    error = 0.0
    for k, (low, high) in enumerate(zip(table["low"], table["high"], strict=True)):
        inside = [(p, right) for p, right in nodes if low < p <= high]
        assert table["nodes"][k] == len(inside)
        error += abs(sum(right for _, right in inside) - sum(p for p, _ in inside)) / len(nodes)
    confidence = torch.tensor([p for p, _ in nodes], dtype=torch.double)
    p = torch.stack([confidence, 1 - confidence], 1)
    y = torch.where(torch.tensor([right for _, right in nodes]), 0, 1)
    # of two equally probable classes either is predicted
    if bool((confidence > 0.5).all()):
        assert float(METRICS["ece"](p, y, 2)) == pytest.approx(error, abs=1e-9)


def test_there_are_fifteen_bins_of_equal_width():
    table = reliability([0.5], [True])
    assert len(table) == 15
    np.testing.assert_allclose(table["high"] - table["low"], 1 / 15)


def test_the_number_of_bins_is_checked():
    with pytest.raises(InputError, match="bins must be at least 1, got 0"):
        reliability([0.5], [True], 0)
