"""While a run trains, a collection of everything is rare, and everything is as before when it has ended."""

import gc
from collections.abc import Iterator

import pytest

from legnn.ops.runtime.garbage import FACTOR, rare_full_collections

THRESHOLDS = 500, 9, 8


@pytest.fixture(autouse=True)
def _own_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    yield
    gc.set_threshold(*before)


def test_only_collections_of_everything_are_rare():
    with rare_full_collections():
        assert gc.isenabled()
        assert gc.get_threshold() == (500, 9, 8 * FACTOR)
    assert gc.get_threshold() == THRESHOLDS


def test_all_is_as_before_after_an_error():
    with pytest.raises(ZeroDivisionError), rare_full_collections():
        _ = 1 / 0
    assert gc.get_threshold() == THRESHOLDS


def test_the_last_of_several_runs_ends_it():
    with rare_full_collections():
        with rare_full_collections():
            pass
        assert gc.get_threshold() != THRESHOLDS
    assert gc.get_threshold() == THRESHOLDS


def test_what_a_caller_sets_meanwhile_stays_so():
    with rare_full_collections():
        gc.set_threshold(100, 5, 5)
    assert gc.get_threshold() == (100, 5, 5)
