"""Runs of two processes that `torchrun` starts: all of them are killed, or `torchrun` alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

from benchmarks.campaign import children
from benchmarks.campaign.children import train_or_resume
from benchmarks.campaign.moments import draw
from benchmarks.campaign.outcomes import Kill, differences, has_one_sentence, outcome
from legnn.errors import FolderInUse
from legnn.locks import hold_folder
from legnn.runs.processes import SECONDS_ALONE, STORE_TIME

SECONDS_OF_START = 10.0
SECONDS_TO_START = 60.0
"""On a busy machine a process may take so long to import the library."""
MOST_SECONDS = SECONDS_ALONE + STORE_TIME.total_seconds() + SECONDS_TO_START
"""Processes whose `torchrun` was killed end within this time."""


class TorchRun:
    """Runs of two processes."""

    def __init__(self, kind: str, words: list[str], folder: Path, epochs: int, *, agent_alone: bool) -> None:
        self.kind, self.words, self.folder, self.epochs = kind, words, folder, epochs
        self.agent_alone = agent_alone

    def kill(self, place: Path, chance: random.Random) -> Kill:
        """Kills a run once, lets it come to its end, and compares."""
        whole, output = self.folder / "torchrun-whole", place.with_suffix(".txt")
        if not whole.is_dir():
            assert self._start(whole, output).wait() == 0, output.read_text()
        while True:
            moment = draw(chance, place / "metrics.jsonl", 0, self.epochs)
            if not moment.lines and not moment.is_folder:
                # while its processes are started, import the library, or look for each other
                moment = replace(moment, seconds=chance.uniform(0, SECONDS_OF_START))
            agent = self._start(place, output)
            moment.wait(lambda agent=agent: agent.poll() is None)
            workers = _children(agent.pid)
            agent.kill()
            if agent.wait() == -signal.SIGKILL:
                break
            rmtree(place)
        fault = self._left_alone(place, workers, output) if self.agent_alone else _end(workers)
        if fault is None:
            code = self._start(place, output).wait()
            fault = f"exit code {code}: {output.read_text()[-500:]}" if code else None
        fault = fault or (", ".join(differences(outcome(whole), outcome(place))) or None)
        return Kill(self.kind, str(moment), 1, fault)

    def _left_alone(self, place: Path, workers: list[int], output: Path) -> str | None:
        """What is wrong with the processes whose `torchrun` was killed; they are gone afterwards."""
        try:
            for worker in workers:
                os.kill(worker, signal.SIGSTOP)
            # stopped, they can neither end nor let go of the folder while another process asks for it
            if (place / "settings.yaml").is_file() and _is_written(place):
                code = children.run(["train", "--resume", place], output)
                if code != 2 or not has_one_sentence(output):
                    return f"resumed while its processes lived, with exit code {code}: {output.read_text()[-300:]}"
        finally:
            for worker in workers:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGCONT)
        end = time.monotonic() + MOST_SECONDS
        while any(map(_lives, workers)):
            if time.monotonic() > end:
                _end(workers)
                return f"its processes were still there after {MOST_SECONDS:.0f} s"
            time.sleep(0.05)
        return None

    def _start(self, place: Path, output: Path) -> subprocess.Popen[bytes]:
        words = train_or_resume(self.words, place)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        with output.open("wb") as file:
            return subprocess.Popen([*command, "-m", "legnn", *words], stdout=file, stderr=subprocess.STDOUT)


def _children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _lives(process: int) -> bool:
    """Whether a process is there, and is not one that has ended and that nobody has asked after."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _end(processes: list[int]) -> None:
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    while any(map(_lives, processes)):
        time.sleep(0.01)


def _is_written(folder: Path) -> bool:
    """Whether a process holds the lock of a folder."""
    try:
        with hold_folder(folder):
            return False
    except FolderInUse:
        return True
