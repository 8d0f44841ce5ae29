"""Members are chosen on validation nodes alone, and not by chance."""

import numpy as np
import pytest

from legnn.errors import InputError
from legnn.search.selection import best_single, fit_temperature, greedy_selection, guarded_selection

CLASSES = 4


def _candidate(y, right, rng, certainty=0.7):
    """Probabilities whose largest entry is at `y` where `right`, else at another class."""
    said = np.where(right, y, (y + rng.integers(1, CLASSES, len(y))) % CLASSES)
    p = np.full((len(y), CLASSES), (1 - certainty) / (CLASSES - 1))
    p[np.arange(len(y)), said] = certainty
    return p


def _accuracy(weights, p, y):
    return (np.tensordot(weights, p, 1).argmax(1) == y).mean()


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def thirds(rng):
    """Three candidates, each wrong on another third of the nodes, and the classes."""
    y = rng.integers(0, CLASSES, 300)
    third = np.arange(300) % 3
    return np.stack([_candidate(y, third != k, rng) for k in range(3)]), y


@pytest.mark.parametrize("select", [greedy_selection, guarded_selection])
def test_complementary_members_beat_each_of_them(select, thirds):
    p, y = thirds
    weights = select(p, y)
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).all()
    assert _accuracy(weights, p, y) > max(_accuracy(one, p, y) for one in np.eye(3)) + 0.2


@pytest.mark.parametrize("select", [greedy_selection, guarded_selection])
def test_of_equal_members_the_first_is_taken(select, thirds):
    p, y = thirds
    assert select(np.stack([p[1]] * 4), y).tolist() == [1, 0, 0, 0]


def test_an_ensemble_is_no_worse_on_validation_than_its_best_member(rng):
    y = rng.integers(0, CLASSES, 80)
    p = rng.dirichlet(np.ones(CLASSES), (10, 80))
    weights = greedy_selection(p, y)
    assert _accuracy(weights, p, y) >= max(_accuracy(one, p, y) for one in np.eye(10))


def test_candidates_that_are_noise_cost_less_with_the_guard(rng):
    lost = {greedy_selection: 0.0, guarded_selection: 0.0}
    for _ in range(20):
        y = rng.integers(0, CLASSES, 1060)
        p = np.stack([_candidate(y, rng.random(1060) < 0.6, rng, 0.5), *rng.dirichlet(np.ones(CLASSES), (20, 1060))])
        for select in lost:
            weights = select(p[:, :60], y[:60])
            lost[select] += _accuracy(np.eye(21)[0], p[:, 60:], y[60:]) - _accuracy(weights, p[:, 60:], y[60:])
    assert lost[guarded_selection] < 0.8 * lost[greedy_selection]


def test_the_first_single_candidate_is_kept_where_others_differ_by_chance(rng):
    kept = best = 0
    for _ in range(40):
        y = rng.integers(0, CLASSES, 200)
        p = rng.dirichlet(np.ones(CLASSES), (3, 200))
        kept += best_single(p, y) == 0
        best += (p.argmax(2) == y).mean(1).argmax() == 0
    assert kept > best + 8


def test_a_single_candidate_is_left_only_for_one_that_is_better_by_more_than_its_error(rng):
    y = rng.integers(0, CLASSES, 400)
    first = rng.random(400) < 0.7
    barely = first.copy()
    barely[np.flatnonzero(~first)[:6]] = True
    barely[np.flatnonzero(first)[:4]] = False
    clearly = first.copy()
    clearly[np.flatnonzero(~first)[:40]] = True
    candidates = [_candidate(y, right, rng) for right in (first, barely, clearly)]
    assert best_single(np.stack(candidates[:2]), y) == 0
    assert best_single(np.stack(candidates), y) == 2


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_a_known_temperature_is_recovered(temperature, rng):
    p = rng.dirichlet(np.full(CLASSES, 5.0), 20_000)
    y = (p.cumsum(1) < rng.random((len(p), 1))).sum(1)
    sharpened = p**temperature / (p**temperature).sum(1, keepdims=True)
    assert fit_temperature(sharpened, y) == pytest.approx(temperature, rel=0.06)


def test_a_temperature_stays_within_bounds_where_all_nodes_are_right(rng):
    y = rng.integers(0, CLASSES, 50)
    assert 0.1 <= fit_temperature(_candidate(y, np.ones(50, bool), rng), y) < 0.2
    assert fit_temperature(np.empty((0, CLASSES)), np.empty(0, int)) == 1


def test_nodes_of_which_nothing_is_known_count_as_wrong(rng):
    y = np.zeros(40, dtype=int)
    nothing, something = np.full((40, CLASSES), 1 / CLASSES), _candidate(y, rng.random(40) < 0.6, rng)
    assert best_single(np.stack([nothing, something]), y) == 1


def test_probabilities_of_other_nodes_are_refused(thirds):
    p, y = thirds
    with pytest.raises(InputError, match="K, n, C"):
        greedy_selection(p[:, 1:], y)
    with pytest.raises(InputError, match="at least one candidate"):
        greedy_selection(p[:0], y)
