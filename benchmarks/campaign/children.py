"""The program in processes that can be killed, started from one that has imported it: a hundred take minutes."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

# not fork: this process may have threads of OpenMP, which a forked one cannot use
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["legnn.cli.entry_point", "legnn.cli.display", "legnn.runs.session", "legnn.search.auto", "legnn.cli.leaderboard"]
)
Child = ForkServerProcess


def gate(parties: int) -> Barrier:
    """Returns what lets so many processes begin at the same moment."""
    return _CONTEXT.Barrier(parties)


def start(words: Sequence[str | Path], output: Path, opens: Barrier | None = None) -> Child:
    """Starts `legnn WORDS` in a process of its own, whose output goes to a file, when a gate opens if one is given."""
    # not a daemon: the program may start processes
    process = _CONTEXT.Process(target=_run, args=([str(word) for word in words], output, opens))
    process.start()
    return process


def train_or_resume(words: Sequence[str], place: Path) -> list[str | Path]:
    """Returns what a user types to train in a folder, whatever was killed there before."""
    if (place / "settings.yaml").is_file():
        return ["train", "--resume", place]
    return ["train", *words, "--out", place]


def run(words: Sequence[str | Path], output: Path, seconds: float = 300.0) -> int:
    """Runs `legnn WORDS` to its end, and returns the exit code; raises `TimeoutError` if it takes longer."""
    process = start(words, output)
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError(f"legnn {' '.join(map(str, words))} was still running after {seconds:.0f} s")
    return process.exitcode


def _run(words: list[str], output: Path, opens: Barrier | None) -> None:
    from legnn.cli import main

    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    sys.argv = ["legnn", *words]
    if opens is not None:
        opens.wait()
    main()
