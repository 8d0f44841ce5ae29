"""The budget: continued from what was used, with a part kept for the ensemble."""

import time

import pytest

from legnn.search.budget import LEAST_RESERVE, MEMBERS, MOST_RESERVE, RESERVE, Budget


@pytest.fixture
def now(monkeypatch):
    """A time that stands still until a test moves it."""
    at = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: at[0])
    return at


def test_a_search_continues_with_what_is_left(tmp_path, now):
    path = tmp_path / "time.json"
    first = Budget(path, 60)
    now[0] += 20
    first.save()
    now[0] += 500  # nobody searches
    second = Budget(path, 60)
    assert (second.used, second.left) == (20, 40)
    now[0] += 10
    second.save()
    assert Budget(path, 100).left == 70


def test_time_is_written_now_and_then(tmp_path, now):
    path = tmp_path / "time.json"
    clock = Budget(path, 60)
    now[0] += 1
    clock.save()
    assert Budget(path, 60).used == 0
    now[0] += 2
    clock.save()
    assert Budget(path, 60).used == 3


@pytest.mark.parametrize("seconds", [30.0, 61.0])
def test_a_finished_search_has_used_its_budget(tmp_path, now, seconds):
    path = tmp_path / "time.json"
    clock = Budget(path, 60)
    now[0] += seconds
    clock.finish()
    again = Budget(path, 60)
    assert again.left == 0
    again.finish()
    assert Budget(path, 90).left == 30
    Budget(path, 10).finish()
    assert Budget(path, 90).left == 30, "a smaller budget gives no time back"


@pytest.mark.parametrize("budget", [10.0, 60.0, 600.0, 36_000.0])
@pytest.mark.parametrize("predict_seconds", [0.0, 0.5, 100.0])
def test_training_ends_early_enough_for_the_ensemble(tmp_path, now, budget, predict_seconds):
    clock = Budget(tmp_path / "time.json", budget)
    now[0] += 3
    reserve = clock.left - clock.training_seconds([predict_seconds] * 20)
    wanted = max(RESERVE * budget, LEAST_RESERVE + MEMBERS * predict_seconds)
    assert reserve == pytest.approx(min(wanted, MOST_RESERVE * budget))


def test_what_is_compiled_for_a_first_prediction_is_not_reserved_for_every_member(tmp_path, now):
    clock = Budget(tmp_path / "time.json", 100)
    left = [clock.training_seconds(seconds) for seconds in ([], [5.0], [5.0, 5.0, 0.1, 0.1, 0.1])]
    assert [100 - seconds for seconds in left] == pytest.approx([4, 9, 4.5])
