"""The search: what is tried, in which order, and what a restart goes on with; nothing is trained here."""

import time

import pytest
from tests.automl.searches import FACTS, begin, finish, plan_in, without_processes

from legnn.automl.candidate_runs import CandidateOutcome, CandidateTask
from legnn.automl.clock import Clock
from legnn.automl.search import Search
from legnn.automl.space import changed, complete
from legnn.runs.worker_process import Failure

CANDIDATES = {
    "one": {"model.hidden": 8}, "two": {"model.hidden": 16, "model.labels": "vanilla"},
    "three": {"model.hidden": 32, "train.seed": 3},
    "four": {"model.architecture": "mlp", "model.hidden": 8},
}  # fmt: skip


@pytest.fixture
def run():
    """Runs a search whose tasks are carried out one after the other, here, by `train`; returns the tasks."""

    def run(search: Search, train=None, most: int = len(CANDIDATES), together: int = 1) -> list[CandidateTask]:
        tasks: list[CandidateTask] = []

        def train_here(task: CandidateTask) -> CandidateOutcome:
            finish(search.plan.candidate(task.name), task.values)
            return CandidateOutcome(1.0, 0.1)

        def carry_out(function, next_task, jobs, *, on_outcome, **_):
            while len(tasks) < most:
                begun = [task for task in (next_task() for _ in range(together)) if task is not None]
                if not begun:
                    return
                tasks.extend(begun)
                for task in begun:
                    on_outcome(task, (train or train_here)(task))

        with without_processes(carry_out):
            search.run(1)
        return tasks

    return run


def new_search(tmp_path, budget: float = 1000, **more) -> Search:
    return Search(plan_in(tmp_path, **{"candidates": CANDIDATES, **more}), Clock(tmp_path / "time.json", budget))


def names(tasks: list[CandidateTask]) -> list[str]:
    return [task.name for task in tasks]


def test_candidates_are_tried_in_the_order_of_the_portfolio(tmp_path, run):
    tasks = run(new_search(tmp_path, given={"train.epochs": 7}))
    assert names(tasks) == list(CANDIDATES)
    assert [task.values for task in tasks] == [{**values, "train.epochs": 7} for values in CANDIDATES.values()]
    assert all(task.folder == tmp_path / "candidates" / task.name for task in tasks)


def test_after_a_restart_the_unfinished_come_first_and_the_finished_not_at_all(tmp_path, run):
    plan = plan_in(tmp_path, CANDIDATES)
    finish(plan.candidate("one"), CANDIDATES["one"])
    begin(plan.candidate("three"), CANDIDATES["three"])
    begin(plan.candidate("one~0-0"), {"model.hidden": 8, "train.lr": 0.02})
    (tmp_path / "candidates" / "four").mkdir()  # killed while its folder was made
    tasks = run(new_search(tmp_path))
    assert names(tasks) == ["three", "one~0-0", "two", "four"]
    assert tasks[1].values["lr"] == 0.02
    assert complete(tasks[1].values, FACTS)["hidden"] == 8


def test_one_killed_before_its_predictions_were_kept_is_unfinished(tmp_path, run):
    plan = plan_in(tmp_path, CANDIDATES)
    finish(plan.candidate("four"), CANDIDATES["four"])
    (tmp_path / "candidates" / "four" / "held_out.safetensors").unlink()
    assert names(run(new_search(tmp_path)))[0] == "four"


def test_after_a_restart_a_hopeless_candidate_stays_paused(tmp_path, run):
    plan = plan_in(tmp_path, CANDIDATES)
    for name in ("one", "two", "three"):
        finish(plan.candidate(name), CANDIDATES[name], [0.9] * 60)
    begin(plan.candidate("four"), CANDIDATES["four"], [0.1] * 30)
    assert "four" not in names(run(new_search(tmp_path)))


def test_local_changes_of_the_leaders_follow_the_portfolio(tmp_path, run):
    curves = {"one": [0.9], "two": [0.8], "three": [0.7], "four": [0.6], "five": [0.1]}
    candidates = {**CANDIDATES, "five": {"model.hidden": 4}}
    plan = plan_in(tmp_path, candidates)
    for name, curve in curves.items():
        finish(plan.candidate(name), candidates[name], curve)

    def train_badly(task):
        finish(plan.candidate(task.name), task.values, [0.0])
        return CandidateOutcome(1.0)

    tasks = run(new_search(tmp_path, candidates=candidates, given={"train.epochs": 9}), train_badly, most=12)
    assert len(set(names(tasks))) == 12
    bases = [name.split("~")[0] for name in names(tasks)]
    assert set(bases) <= set(CANDIDATES), "the last is no leader"
    assert bases.count("one") > 2
    for base, task in zip(bases, tasks, strict=True):
        origin = complete({**CANDIDATES[base], "train.epochs": 9}, FACTS)
        other = complete(task.values, FACTS)
        assert other["epochs"] == 9, "what is given is not changed"
        assert 1 <= len(changed(origin, other)) <= 2 or origin["seed"] != other["seed"]


def test_changes_begun_at_the_same_time_or_after_a_restart_have_names_of_their_own(tmp_path, run):
    plan = plan_in(tmp_path, CANDIDATES)
    for name, values in CANDIDATES.items():
        finish(plan.candidate(name), values)
    first = names(run(new_search(tmp_path), most=3, together=3))
    second = names(run(new_search(tmp_path), most=3, together=3))
    other = names(run(new_search(tmp_path, rank=1, world_size=2), most=3, together=3))
    assert len({*first, *second, *other}) == 9


def test_no_local_change_is_tried_twice_and_the_search_ends_when_there_are_no_more(tmp_path, run):
    plan = {
        "candidates": {"one": {"model.architecture": "label_propagation"}},
        "given": {"model.label_propagation.steps": 50, "train.seed": 0},
    }
    first = run(new_search(tmp_path, **plan), most=3)
    second = run(new_search(tmp_path, **plan), most=100)
    alphas = [complete(task.values, FACTS)["propagation_alpha"] for task in (*first, *second)]
    assert len(alphas) == len(set(alphas)) > 3
    assert len(alphas) < 10


def test_a_candidate_that_cannot_have_what_is_given_does_not_end_the_search(tmp_path, run):
    tasks = run(new_search(tmp_path, given={"model.dropout": 2}), lambda task: CandidateOutcome(1.0, error="no"))
    assert names(tasks) == list(CANDIDATES)


def test_without_a_finished_candidate_there_is_nothing_to_change(tmp_path, run):
    def fail(task):
        return CandidateOutcome(1.0, error="no")

    assert names(run(new_search(tmp_path), fail, most=10)) == list(CANDIDATES)


def test_nothing_is_begun_when_the_time_is_over(tmp_path, run):
    assert run(new_search(tmp_path, budget=1)) == []
    assert run(new_search(tmp_path, budget=1)) == []


def test_a_task_ends_before_the_reserve_of_the_ensemble(tmp_path, run):
    first, *_, last = run(new_search(tmp_path, budget=100))
    assert first.deadline < time.time() + 100 - 3.9
    assert last.deadline < first.deadline - 0.25, "predictions take time, which is known by now"


def test_failed_candidates_are_kept_with_their_reason_and_not_tried_again(tmp_path, run):
    search = new_search(tmp_path)

    def train(task):
        folder = search.plan.candidate(task.name)
        if task.name == "one":
            return Failure("its process was ended (signal 9)")
        if task.name == "two":
            folder.fail("hidden must be smaller")
            return CandidateOutcome(1.0, error="hidden must be smaller")
        if task.name == "three":
            folder.fail("RuntimeError: device-side assert")
            return Failure("its process was ended (exit code 1)")
        finish(folder, task.values)
        return CandidateOutcome(1.0)

    run(search, train)
    folders = search.plan.folders()
    assert {name: one.state for name, one in folders.items()} == {
        "one": "failed", "two": "failed", "three": "failed", "four": "finished",
    }  # fmt: skip
    assert folders["one"].failure() == "its process was ended (signal 9)"
    assert folders["three"].failure() == "RuntimeError: device-side assert", "the cause, not that the process ended"
    assert names(run(new_search(tmp_path), most=1)) == ["four~0-0"]
    assert {row.name: row.state for row in new_search(tmp_path)._watch([])} == {
        "four": "finished",
        "four~0-0": "finished",
    }


def test_one_that_was_killed_because_it_was_late_continues_with_more_time(tmp_path, run):
    search = new_search(tmp_path)

    def be_late(task):
        begin(search.plan.candidate(task.name), task.values)
        return Failure("its process was ended (signal 9)")

    (task,) = run(search, be_late, most=1)
    assert search.plan.candidate("one").state == "failed"
    (tmp_path / "candidates" / "one" / "failure.txt").unlink()
    search._note(task._replace(deadline=time.time() - 1), Failure("its process was ended (signal 9)"))
    assert search.plan.candidate("one").state == "begun"
    assert names(run(new_search(tmp_path), most=1)) == ["one"]


def test_each_candidate_is_tried_by_one_rank(tmp_path, run):
    plan = plan_in(tmp_path, CANDIDATES)
    begin(plan.candidate("two"), CANDIDATES["two"])
    begin(plan.candidate("one~1-0"), {"model.hidden": 8})
    # both look before either begins, and the first one finds what the second has begun
    searches = [new_search(tmp_path, rank=rank, world_size=2) for rank in (0, 1)]
    second = names(run(searches[1], most=3))
    again = new_search(tmp_path, rank=0, world_size=2)
    first = names(run(again, most=2))
    assert first == ["one", "three"]
    assert second == ["two", "one~1-0", "four"]


class Busy:
    """A worker with a task in flight."""

    def __init__(self, task: CandidateTask) -> None:
        self.task, self.asked = task, []

    def pause(self) -> None:
        self.asked.append("pause")

    def kill(self) -> None:
        self.asked.append("kill")


def task_of(search: Search, name: str, seconds: float = 100) -> CandidateTask:
    return CandidateTask(name, search.plan.candidate(name).path, "digits", {}, time.time() + seconds)


def test_a_hopeless_candidate_is_paused_once_at_a_rung_and_a_good_one_is_not(tmp_path):
    plan = plan_in(tmp_path, CANDIDATES)
    for name in ("one", "two", "three"):
        finish(plan.candidate(name), CANDIDATES[name], [0.9] * 60)
    begin(plan.candidate("four"), CANDIDATES["four"], [0.1] * 10)
    begin(plan.candidate("one~0-0"), CANDIDATES["one"], [0.9] * 30)
    search = new_search(tmp_path)
    bad, good = (Busy(task_of(search, name)) for name in ("four", "one~0-0"))
    search._watch([bad, good])
    assert bad.asked == []
    begin(plan.candidate("four"), CANDIDATES["four"], [0.1] * 25)
    for _ in range(2):
        rows = search._watch([bad, good])
    assert (bad.asked, good.asked) == (["pause"], [])
    assert [(row.name, row.state, row.val, row.epochs) for row in rows][-1] == ("four", "training", 0.1, 25)
    search._note(bad.task, CandidateOutcome(1.0, is_paused=True))
    assert [row.state for row in search._watch([good])] == ["finished"] * 3 + ["training", "paused"]


def test_a_candidate_that_does_not_end_is_killed_after_a_while(tmp_path):
    search = new_search(tmp_path, budget=100)
    on_time, late = Busy(task_of(search, "one", -4)), Busy(task_of(search, "two", -6))
    search._watch([on_time, late])
    assert (on_time.asked, late.asked) == ([], ["kill"])
