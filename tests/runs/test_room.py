"""Which runs of a process train at the same time: small ones in turns, a large one alone, in the order they came."""

import time
from contextvars import ContextVar

import pytest
import torch
from tests.graphs import small_data

import legnn
from legnn.config import Settings
from legnn.errors import Interrupted, OutOfMemory
from legnn.runs import room
from legnn.runs.checkpointer import Checkpointer
from legnn.runs.room import open_room, train_beside_others
from legnn.runs.turns import Turns
from legnn.training.sharing import current_group, during_turns

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def graph():
    return legnn.load(small_data())


def settings_of(graph, **given):
    return Settings(given={"device": "cpu", "batch": "full", **given}).resolve(graph.facts())


class Runs:
    """Runs of some epochs that note when they train, and with whom they share something."""

    def __init__(self, graph, most: int = 8) -> None:
        self.graph, self.turns, self.told, self.groups = graph, Turns(CPU, most), [], {}

    def begin(self, name: str, epochs: int = 3, *, is_over=lambda: False, fails: int = 0, **given) -> None:
        left = [fails]

        def start():
            self.groups[name] = current_group()
            for _ in range(epochs):
                self.told.append(name)
                yield
                if left[0]:
                    left[0] -= 1
                    raise OutOfMemory("out of memory")
            return name

        self.turns.begin(name, train_beside_others(self.graph, settings_of(self.graph, **given), start, is_over))

    def finish(self) -> dict:
        ended = {}
        while self.turns:
            ended.update({key: error or value for key, value, error in self.turns.take()})
        return ended


def test_small_runs_take_turns_and_those_that_differ_in_the_seed_share_a_graph(graph):
    with open_room():
        runs = Runs(graph)
        runs.begin("a", seed=1)
        runs.begin("b", seed=2)
        runs.begin("c", hidden=8)
        assert runs.finish() == {"a": "a", "b": "b", "c": "c"}
    assert "".join(runs.told) == "abcabcabc"
    assert runs.groups["a"] is runs.groups["b"] is not runs.groups["c"] is not None


def test_a_run_that_is_not_small_waits_until_none_trains_and_later_ones_wait_behind_it(graph):
    with open_room():
        runs = Runs(graph)
        runs.begin("a", 5)
        runs.begin("L", batch=16)
        runs.begin("b")
        runs.begin("M", batch=16)
        runs.finish()
    assert "".join(runs.told) == "aaaaaLLLbbbMMM"
    assert runs.groups["L"] is None, "it has the process alone"


def test_a_run_for_which_there_is_too_little_memory_waits_for_the_others(graph, monkeypatch):
    monkeypatch.setattr(room, "bytes_in_turns", lambda settings, graph: 2**62 if settings.model.hidden == 8 else 1)
    with open_room():
        runs = Runs(graph)
        runs.begin("a")
        runs.begin("L", hidden=8)
        runs.finish()
    assert "".join(runs.told) == "aaaLLL"


@pytest.mark.parametrize(("fails", "ends"), [(1, str), (2, OutOfMemory)])
def test_a_run_that_is_out_of_memory_beside_others_is_tried_again_alone(graph, fails, ends):
    with open_room():
        runs = Runs(graph)
        runs.begin("a")
        runs.begin("b", fails=fails)
        ended = runs.finish()
    assert ended["a"] == "a"
    assert isinstance(ended["b"], ends)
    assert "".join(runs.told).startswith("abaab")
    assert runs.groups["b"] is None


def test_a_run_whose_time_is_over_while_it_waits_does_not_begin(graph):
    with open_room():
        runs = Runs(graph)
        runs.begin("a", 5)
        runs.begin("L", batch=16, is_over=lambda: len(runs.told) > 2)
        runs.begin("b")
        ended = runs.finish()
    assert isinstance(ended["L"], Interrupted)
    assert sorted(runs.told) == ["a"] * 5 + ["b"] * 3


def test_a_run_whose_time_was_over_before_its_first_turn_does_not_begin(graph):
    with open_room():
        runs = Runs(graph)
        runs.begin("a", is_over=lambda: True)
        ended = runs.finish()
    assert isinstance(ended["a"], Interrupted)
    assert runs.told == []


def test_runs_that_are_left_end_with_context_variables_of_their_own():
    variable, ended = ContextVar("variable", default=0), []

    def run(value: int):
        token = variable.set(value)
        try:
            yield
        finally:
            ended.append(variable.get())
            variable.reset(token)

    turns = Turns(CPU, 2)
    turns.begin("a", run(1))
    turns.begin("b", run(2))
    assert list(turns.take()) == []
    turns.close()
    assert sorted(ended) == [1, 2]
    assert not turns


def test_what_a_process_has_once_is_each_runs_own_in_its_turns():
    held: list[str] = []

    class Held:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            held.append(self.name)

        def __exit__(self, *_) -> None:
            held.remove(self.name)

    def run(name: str):
        yield held[:]
        with during_turns(lambda: Held(name)):
            for _ in range(3):
                assert held == [name]
                yield
        yield
        assert held == []

    turns = Turns(CPU, 2)
    turns.begin("a", run("a"))
    turns.begin("b", run("b"))
    while turns:
        assert all(error is None for _, _, error in turns.take())
        assert held == []


def test_the_seconds_of_a_run_are_those_of_its_own_turns():
    seconds = {}

    def steps(name: str, pause: float):
        checkpointer = Checkpointer(None, None, 5.0, is_writer=True)
        for _ in range(4):
            time.sleep(pause)
            yield
        seconds[name] = checkpointer.seconds

    turns = Turns(CPU, 2)
    turns.begin("short", steps("short", 0.0))
    turns.begin("long", steps("long", 0.1))
    while turns:
        list(turns.take())
    assert 0 <= seconds["short"] < 0.2
    assert seconds["long"] >= 0.4
