"""Two processes that train into one folder at the same time: one does, the other is refused, and nothing is mixed."""

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pandas as pd
import pytest
from tests.graphs import small_data
from tests.named import arguments

import legnn
from legnn.errors import FolderInUse, InputError
from legnn.runs import RunFolder
from legnn.training import EpochLog

QUICK = {"epochs": 4, "hidden": 8, "backbone": "gcn", "device": "cpu"}
RACES = 20


def compete(connection: Connection, seed: int, places: list[Path]) -> None:
    """Trains into each of the folders when told to, and sends what became of it."""
    legnn.train(small_data(), **arguments(**QUICK))  # kernels are read from the disk before the first race
    for place in places:
        connection.send("ready")
        connection.recv()
        try:
            legnn.train(small_data(), **arguments(**QUICK, seed=seed), out=place)
            connection.send("trained")
        except (InputError, FolderInUse) as error:
            connection.send(str(error))


def hang(connection: Connection, place: Path) -> None:
    """Trains two epochs, says so, and waits to be killed."""

    def after(log: EpochLog) -> None:
        if log.epoch == 2:
            connection.send("")
            signal.pause()

    legnn.train(small_data(), **arguments(**QUICK), out=place, on_epoch=after)


def start(function, *arguments: object) -> tuple[multiprocessing.Process, Connection]:
    # neither fork, after which OpenMP cannot be used, nor slow
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["legnn.runs.session", "tests.runs.test_races"])
    mine, theirs = context.Pipe()
    process = context.Process(target=function, args=(theirs, *arguments), daemon=True)
    process.start()
    return process, mine


def test_of_two_trainings_into_one_folder_one_is_refused_in_20_of_20_races(tmp_path):
    places = [tmp_path / str(k) for k in range(RACES)]
    alone = [legnn.train(small_data(), **arguments(**QUICK, seed=seed)) for seed in (0, 1)]
    pairs = [start(compete, seed, places) for seed in (0, 1)]
    for place in places:
        for _, connection in pairs:
            assert connection.recv() == "ready"
        for _, connection in pairs:
            connection.send("go")
        said = [connection.recv() for _, connection in pairs]
        assert said.count("trained") == 1, said
        winner = said.index("trained")
        refusal = said[1 - winner]
        assert "is writing to" in refusal or "is already there" in refusal
        run = RunFolder.open(place)
        assert run.settings.train.seed == run.result().seed == winner
        assert len(run.logs()) == 4
        pd.testing.assert_frame_equal(run.predictions(), alone[winner].predictions, check_exact=True)


def test_a_run_whose_process_was_killed_is_taken_over(tmp_path):
    process, connection = start(hang, tmp_path / "run")
    connection.recv()
    with pytest.raises(FolderInUse, match=rf"another process \({process.pid} on .*\) is writing to"):
        legnn.resume(tmp_path / "run", small_data())
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    run = legnn.resume(tmp_path / "run", small_data())
    assert run.predictions.equals(legnn.train(small_data(), **arguments(**QUICK)).predictions)
