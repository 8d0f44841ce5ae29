"""Ranks over data sets: by hand, and Demšar's table of critical values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legnn.analysis.ranks import critical_difference, friedman_p_value, mean_ranks
from legnn.errors import InputError

# Demšar (2006), table 5a: critical values of the Nemenyi test at 0.05 for 2 to 10 methods
CRITICAL_VALUES = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}


def test_the_best_has_rank_one_and_equals_share_their_ranks():
    scores = [[0.9, 0.8, 0.7], [0.5, 0.5, 0.1], [0.2, 0.2, 0.2]]
    assert mean_ranks(scores).tolist() == pytest.approx([4.5 / 3, 5.5 / 3, 8 / 3])


@given(st.integers(2, 6), st.integers(1, 6), st.integers(0, 100))
def test_mean_ranks_have_the_mean_of_all_ranks(k, n, seed):
    scores = np.random.default_rng(seed).integers(0, 4, (n, k))
    assert mean_ranks(scores).mean() == pytest.approx((k + 1) / 2)


@pytest.mark.parametrize(("k", "q"), CRITICAL_VALUES.items())
def test_the_critical_difference_has_the_values_of_demsars_table(k, q):
    assert critical_difference(k, 14) == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * 14)), rel=5e-4)


def test_the_critical_difference_of_five_methods_on_thirty_data_sets_worked_by_hand():
    # 2.728 · sqrt(5 · 6 / 180)
    assert critical_difference(5, 30) == pytest.approx(1.1137, abs=3e-4)


def test_friedmans_test_worked_by_hand():
    # mean ranks 1, 2 and 3 on 4 data sets: χ² = 12 · 4 / (3 · 4) · (1 + 4 + 9 - 3 · 4² / 4) = 8, whose p is exp(-8 / 2)
    assert friedman_p_value([[3, 2, 1]] * 4) == pytest.approx(math.exp(-4))


@pytest.mark.parametrize("scores", [[[0.1, 0.2, 0.3]], [[0.1, 0.2], [0.2, 0.1]], [[0.5] * 3] * 4])
def test_friedmans_test_says_nothing_of_two_methods_one_data_set_or_equal_scores(scores):
    assert math.isnan(friedman_p_value(scores))


def test_a_missing_score_is_refused():
    with pytest.raises(InputError, match="none is missing"):
        mean_ranks([[0.1, math.nan]])
    with pytest.raises(InputError, match="at least 2 methods"):
        critical_difference(1, 3)
