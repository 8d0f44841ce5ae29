"""While a run trains, garbage is collected among new objects alone, and everything is as before when it has ended."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from legnn.ops.runtime.garbage import collecting_new_objects


class Cycle:
    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def _nothing_is_frozen() -> Iterator[None]:
    """The tests before and after this one freeze what was imported."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_new_garbage_is_collected_and_old_garbage_afterwards():
    gc.disable()
    try:
        old = weakref.ref(Cycle())
        with collecting_new_objects():
            new = weakref.ref(Cycle())
            gc.collect()
            assert new() is None
            assert old() is not None
        gc.collect()
        assert old() is None
    finally:
        gc.enable()


def test_nothing_is_frozen_afterwards_also_after_an_error():
    with pytest.raises(ZeroDivisionError), collecting_new_objects():
        _ = 1 / (gc.get_freeze_count() == 0)
    assert gc.get_freeze_count() == 0


def test_the_last_of_several_runs_lets_go():
    with collecting_new_objects():
        with collecting_new_objects():
            pass
        assert gc.get_freeze_count()
    assert gc.get_freeze_count() == 0


def test_what_a_caller_has_frozen_stays_so():
    gc.freeze()
    with collecting_new_objects():
        pass
    assert gc.get_freeze_count()
