"""Processes killed at any moment and resumed: the result must be that of an undisturbed run, bit for bit.

python -m benchmarks.campaign kills --count 100 --seed 0
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

from benchmarks.campaign import children
from benchmarks.campaign.agents import TorchRun
from benchmarks.campaign.children import train_or_resume
from benchmarks.campaign.moments import Moment, count_lines, draw
from benchmarks.campaign.outcomes import Kill, differences, has_one_sentence, outcome
from benchmarks.campaign.quick_runs import QUICK_RUNS, SEARCH, QuickRun, write_graphs
from legnn.sweep.sweep import is_finished

EPOCHS = 40
AGAIN = 0.25
"""How often what is resumed is killed as well."""
MOST_TRIES = 5
"""A process may end before its moment has come: another moment is drawn."""
SHARES = {"full": 38, "mini": 24, "prepare": 18, "two processes": 7, "agent": 7, "auto": 6}
"""Kills of each kind in a hundred: processes of `torchrun` and searches take ten times as long as the others."""


@dataclass
class Kills:
    """What all kills came to."""

    found: list[Kill] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether everything that was killed came to the same end."""
        return all(one.fault is None for one in self.found)

    def markdown(self) -> str:
        """Returns a table by kind, and a line for each fault."""
        lines = ["| killed | kills | resumed bit for bit |", "|---|---:|---:|"]
        for kind in dict.fromkeys(one.kind for one in self.found):
            mine = [one for one in self.found if one.kind == kind]
            good = sum(one.kills for one in mine if one.fault is None)
            lines.append(f"| {kind} | {sum(one.kills for one in mine)} | {good} |")
        kills, good = sum(one.kills for one in self.found), sum(one.kills for one in self.found if one.fault is None)
        lines.append(f"| all | {kills} | {good} |")
        return "\n".join([*lines, *(f"- {one.kind}, {one.moment}: {one.fault}" for one in self.found if one.fault)])


def shares_of(count: int, kinds: Sequence[str] = tuple(SHARES)) -> dict[str, int]:
    """Returns how many of `count` kills are of each kind."""
    whole = sum(SHARES[kind] for kind in kinds)
    found = {kind: count * SHARES[kind] // whole for kind in kinds}
    for kind in list(kinds)[: count - sum(found.values())]:
        found[kind] += 1
    return found


def kill_many(
    count: int,
    seed: int,
    folder: Path,
    kinds: Sequence[str] = tuple(SHARES),
    on_kill: Callable[[Kill], None] = lambda kill: None,
) -> Kills:
    """Kills at least `count` processes of the given kinds, and resumes each."""
    began, found = time.monotonic(), Kills()
    chance, kits = random.Random(seed), _kits(write_graphs(folder / "graphs"), folder)
    for kind, number in shares_of(count, kinds).items():
        before = len(found.found)
        while sum(one.kills for one in found.found[before:]) < number:
            place = folder / f"{kind.replace(' ', '-')}-{len(found.found)}"
            one = kits[kind](place, chance)
            found.found.append(one)
            on_kill(one)
            if one.fault is None:  # what went wrong is kept to be looked at
                rmtree(place, ignore_errors=True)
    found.seconds = time.monotonic() - began
    return found


Kit = Callable[[Path, random.Random], Kill]


def _kits(graphs: Path, folder: Path) -> dict[str, Kit]:
    """How a process of each kind is killed; what an undisturbed one leaves is computed when it is first needed."""
    mini = QuickRun("plain", {**QUICK_RUNS["mini, AS-Train"].options, "epochs": EPOCHS, "patience": EPOCHS})
    full = QuickRun("plain", {**QUICK_RUNS["full, AS-Train"].options, "epochs": EPOCHS, "patience": EPOCHS})
    return {
        "full": _Training("full", full.words(graphs), folder).kill,
        "mini": _Training("mini", mini.words(graphs), folder).kill,
        "prepare": _Preparing(graphs / "large", folder).kill,
        "two processes": TorchRun("two processes", mini.words(graphs), folder, EPOCHS, agent_alone=False).kill,
        "agent": TorchRun("agent", mini.words(graphs), folder, EPOCHS, agent_alone=True).kill,
        "auto": _Searching(graphs / "plain", folder).kill,
    }


class _Training:
    """Trainings in one process."""

    def __init__(self, kind: str, words: list[str], folder: Path) -> None:
        self.kind, self.words, self.folder = kind, words, folder
        self.undisturbed: dict[str, str] | None = None

    def kill(self, place: Path, chance: random.Random) -> Kill:
        """Kills a run, perhaps more than once, lets it come to its end, and compares."""
        output = place.with_suffix(".txt")
        if self.undisturbed is None:
            whole = self.folder / f"{self.kind}-whole"
            code = children.run(["train", *self.words, "--out", whole], output)
            assert code == 0, output.read_text()
            self.undisturbed = outcome(whole)
        kills, first = 0, None
        while kills == 0 or chance.random() < AGAIN:
            moment = draw(chance, place / "metrics.jsonl", count_lines(place / "metrics.jsonl"), EPOCHS)
            if _kill_at(moment, children.start(train_or_resume(self.words, place), output)):
                kills, first = kills + 1, first or moment
            elif (place / "result.json").is_file():
                if kills:
                    break
                rmtree(place)
        code = children.run(train_or_resume(self.words, place), output)
        fault = f"exit code {code}: {output.read_text()[-300:]}" if code else None
        different = differences(self.undisturbed, outcome(place)) if not code else []
        return Kill(self.kind, str(first), kills, fault or (", ".join(different) or None))


class _Preparing:
    """`legnn data prepare`."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.words = ["data", "prepare", source, "--out"]
        self.folder = folder
        self.undisturbed: dict[str, str] | None = None

    def kill(self, place: Path, chance: random.Random) -> Kill:
        """Kills it; the folder is whole, or refused in one sentence and can be prepared again."""
        output = place.with_suffix(".txt")
        if self.undisturbed is None:
            whole = self.folder / "prepare-whole"
            assert children.run([*self.words, whole], output) == 0, output.read_text()
            self.undisturbed = outcome(whole)
        for _ in range(MOST_TRIES):
            # while it writes, for the most part; reading the tables takes longer
            moment = Moment(place, is_folder=chance.random() < 0.8, seconds=chance.uniform(0, 0.1))
            if _kill_at(moment, children.start([*self.words, place], output)):
                break
            rmtree(place, ignore_errors=True)
        else:
            return Kill("prepare", "none", 1, "it ended before it was killed")
        fault = None
        if not (place / "graph.json").is_file():
            code = children.run(["data", "list", place], output)
            if code != 2 or not has_one_sentence(output):
                fault = f"it is read with exit code {code}: {output.read_text()[-300:]}"
            elif code := children.run([*self.words, place], output):
                fault = f"it cannot be prepared again, exit code {code}: {output.read_text()[-300:]}"
        return Kill("prepare", str(moment), 1, fault or (", ".join(self._differences(place)) or None))

    def _differences(self, place: Path) -> list[str]:
        assert self.undisturbed is not None
        found = outcome(place)
        # a kill between the last file and the removal of the mark leaves the mark in a whole folder
        found.pop(".unfinished", None)
        return differences(self.undisturbed, found)


class _Searching:
    """`legnn auto`: its processes live on for a moment, and a search goes on where it was."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.words = ["auto", source, *SEARCH, "--out"]

    def kill(self, place: Path, chance: random.Random) -> Kill:
        """Kills a search; what was finished is not touched, and it ends with a leaderboard and members."""
        output = place.with_suffix(".txt")
        candidates = place / "candidates"
        for _ in range(MOST_TRIES):
            moment = Moment(candidates, is_folder=True, seconds=chance.uniform(0, 4))
            if _kill_at(moment, children.start([*self.words, place], output)):
                break
            rmtree(place, ignore_errors=True)
        else:
            return Kill("auto", "none", 1, "it ended before it was killed")
        finished = [one for one in candidates.iterdir() if is_finished(one, held_out=True)]
        before = {one: outcome(one) for one in finished}
        code = children.run([*self.words, place], output)
        fault = f"exit code {code}: {output.read_text()[-300:]}" if code else None
        for one, files in before.items():
            if different := differences(files, outcome(one)):
                fault = fault or f"{one.name} was finished and was changed: {', '.join(different)}"
        for name in ("leaderboard.csv", "ensemble.json", "predictions.parquet"):
            if not (place / name).is_file():
                fault = fault or f"there is no {name}"
        return Kill("auto", f"{moment}, {len(finished)} finished", 1, fault)


def _kill_at(moment: Moment, process: children.Child) -> bool:
    """Kills a process at a moment; False if it ended before."""
    moment.wait(process.is_alive)
    process.kill()
    process.join()
    was_killed = process.exitcode == -9
    process.close()
    return was_killed
