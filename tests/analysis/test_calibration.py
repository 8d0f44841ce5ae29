"""Calibration: reliability, ECE, Brier score."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legnn.analysis.calibration import brier_score, expected_calibration_error, reliability
from legnn.errors import InputError


def test_a_fair_coin_that_says_one_half_is_calibrated_and_one_that_says_more_is_not():
    right = np.arange(100) % 2
    assert expected_calibration_error(np.full(100, 0.5), right) == 0
    assert expected_calibration_error(np.full(100, 0.9), right) == pytest.approx(0.4)


def test_certainty_is_calibrated_where_it_is_right():
    assert expected_calibration_error(np.ones(5), np.ones(5)) == 0
    assert expected_calibration_error(np.ones(5), np.zeros(5)) == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1), st.integers(1, 20))
def test_it_is_the_definition_written_out(nodes, bins):
    error, total = 0.0, 0
    table = reliability(*map(list, zip(*nodes, strict=True)), bins)
    assert len(table) == bins
    for k, (low, high) in enumerate(zip(table["low"], table["high"], strict=True)):
        own = [(p, right) for p, right in nodes if low < p <= high or (k == 0 and p == 0)]
        assert table["nodes"][k] == len(own)
        total += len(own)
        error += abs(sum(right for _, right in own) - sum(p for p, _ in own))
    assert total == len(nodes)
    found = expected_calibration_error(*map(list, zip(*nodes, strict=True)), bins)
    assert found == pytest.approx(error / total, abs=1e-9)
    assert 0 <= found <= 1


def test_there_are_fifteen_bins_of_equal_width():
    table = reliability([0.5], [True])
    assert len(table) == 15
    np.testing.assert_allclose(table["high"] - table["low"], 1 / 15)


def test_without_nodes_there_is_no_error():
    assert math.isnan(expected_calibration_error([], []))
    assert math.isnan(brier_score(np.zeros((2, 3)), [-1, -1]))


def test_the_number_of_bins_is_checked():
    with pytest.raises(InputError, match="bins must be at least 1, got 0"):
        reliability([0.5], [True], 0)


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1), st.randoms(use_true_random=False))
def test_the_brier_score_is_the_squared_distance_to_the_one_hot_row(weights, random):
    p = np.array(weights) + 1e-3
    p /= p.sum(1, keepdims=True)
    y = np.array([random.randrange(3) for _ in weights])
    assert brier_score(p, y) == pytest.approx(np.square(p - np.eye(3)[y]).sum(1).mean())
    unknown = np.append(y, -1)
    assert brier_score(np.vstack([p, [1, 0, 0]]), unknown) == pytest.approx(brier_score(p, y))
