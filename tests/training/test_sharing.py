"""Runs that share a process: what they do in threads, and what they leave to each other."""

import threading

import pytest
import torch

from legnn.runs.turns import Turns
from legnn.training.cuda_graph import CudaGraphs
from legnn.training.sharing import Group, finish, in_thread, joined

CPU = torch.device("cpu")


def test_a_run_that_has_the_process_alone_starts_no_thread():
    assert finish(in_thread(threading.get_ident)) == threading.get_ident()


def test_work_in_a_thread_goes_on_while_others_have_their_turns():
    told, others = [], threading.Event()

    def writes():
        found = yield from in_thread(lambda: others.wait(10) and threading.get_ident())
        told.append(found)

    def trains():
        others.set()
        yield

    turns = Turns(CPU, 2)
    turns.begin("writes", writes())
    turns.begin("trains", trains())
    while turns:
        assert [error for _, _, error in turns.take() if error] == []
    assert told
    assert told[0] not in (False, threading.get_ident())


def test_others_have_many_turns_while_a_thread_works():
    turns_of_others, done = [], threading.Event()

    def trains():
        while not done.is_set():
            turns_of_others.append(1)
            if len(turns_of_others) == 10:
                done.set()
            yield

    turns = Turns(CPU, 2)
    turns.begin("writes", in_thread(lambda: done.wait(10)))
    turns.begin("trains", trains())
    ended = {}
    while turns:
        ended |= {key: value for key, value, _ in turns.take()}
    assert ended["writes"] is True, "the thread was not waited for in one turn"


def test_an_error_in_a_thread_is_one_of_its_run():
    def fail():
        raise OSError("the disk is full")

    turns = Turns(CPU, 1)
    turns.begin("writes", in_thread(fail))
    ended = []
    while turns:
        ended += turns.take()
    assert isinstance(ended[0].error, OSError)


def test_a_run_that_is_ended_at_its_pause_has_written_what_it_had_begun():
    written, may_write = [], threading.Event()

    def write():
        may_write.wait(10)
        written.append(1)

    turns = Turns(CPU, 1)
    turns.begin("writes", in_thread(write))
    assert [*turns.take()] == []
    threading.Timer(0.05, may_write.set).start()
    turns.close()
    assert written == [1]


def test_a_group_whose_steps_are_not_captured_is_not_waited_for():
    group = Group(CPU)
    with joined(group):
        assert not CudaGraphs(CPU).enabled
    assert group.gave_up
    assert not group.is_captured


@pytest.mark.parametrize("free", [Group.free_ended, Group.close])
def test_captured_steps_of_ended_runs_are_kept_until_another_begins_or_the_last_has_ended(free):
    group = Group(CPU)
    with joined(group):
        graphs = CudaGraphs(CPU)
    graphs._steps.append("captured")
    graphs.end()
    assert group.ended == ["captured"]
    free(group)
    assert group.ended == []
