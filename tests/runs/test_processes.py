"""Processes whose `torchrun` was killed: they end by themselves, whatever they wait for."""

import os
import threading
from datetime import timedelta

import pytest

from legnn.errors import InputError, Interrupted
from legnn.runs import processes


@pytest.fixture
def killed(monkeypatch) -> list[int]:
    """A process without its `torchrun`; the codes with which it ends."""
    codes: list[int] = []
    monkeypatch.setattr(processes, "agent_died", lambda: True)
    monkeypatch.setattr(processes, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes


def wait(condition) -> None:
    for _ in range(500):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not happen")


def test_a_process_that_waits_for_others_ends_when_its_torchrun_was_killed(killed, monkeypatch, capfd):
    monkeypatch.setattr(processes, "SECONDS_ALONE", 0.0)
    with processes._end_without_agent():
        wait(lambda: killed)
    assert killed[0] == 1
    assert "torchrun was killed" in capfd.readouterr().err


def test_a_process_that_ends_by_itself_in_time_is_left_alone(killed, monkeypatch):
    monkeypatch.setattr(processes, "SECONDS_ALONE", 60.0)
    with processes._end_without_agent():
        (watching,) = [one for one in threading.enumerate() if one.name == "legnn-agent"]
    wait(lambda: not watching.is_alive())
    assert not killed


def test_a_process_whose_torchrun_was_killed_before_it_joined_the_others_is_interrupted(killed, monkeypatch):
    monkeypatch.setattr(processes, "under_torchrun", lambda: True)
    with pytest.raises(Interrupted), processes.join_ranks():
        pass


def test_a_store_that_cannot_be_reached_is_one_sentence(monkeypatch):
    monkeypatch.setattr(processes, "STORE_TIME", timedelta(seconds=1))
    here = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in {**here, "TORCHELASTIC_USE_AGENT_STORE": "True"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="torchrun, which started this process, cannot be reached"):
        processes._reach_store()
