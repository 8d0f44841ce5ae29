"""Writers that start into one folder at the same moment: one goes on, the others are refused in one sentence.

python -m benchmarks.campaign races --count 20
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

from benchmarks.campaign import children
from benchmarks.campaign.moments import count_lines
from benchmarks.campaign.outcomes import differences, has_one_sentence, outcome
from benchmarks.campaign.quick_runs import QUICK_RUNS, SEARCH, write_graphs

EPOCHS = 150
"""Long enough that no writer has ended before another one begins."""
REFUSED = 2
MOST_TRIES = 5

Words = list[str | Path]


@dataclass(frozen=True)
class Race:
    """What became of writers that raced."""

    kind: str
    codes: list[int]
    """Their exit codes."""
    fault: str | None = None
    """What was not as promised."""


@dataclass
class Races:
    """What all races came to."""

    found: list[Race] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether one of all writers went on in every race, as if it were alone."""
        return all(one.fault is None for one in self.found)

    def markdown(self) -> str:
        """Returns a table by kind, and a line for each fault."""
        lines = ["| race | races | one went on as if alone, the others were refused |", "|---|---:|---:|"]
        for kind in dict.fromkeys(one.kind for one in self.found):
            mine = [one for one in self.found if one.kind == kind]
            lines.append(f"| {kind} | {len(mine)} | {sum(one.fault is None for one in mine)} |")
        lines.append(f"| all | {len(self.found)} | {sum(one.fault is None for one in self.found)} |")
        return "\n".join([*lines, *(f"- {one.kind}: {one.fault}" for one in self.found if one.fault)])


SHARES = {
    "train + train": 4,
    "train + train + train": 3,
    "train + resume": 2,
    "resume + resume": 3,
    "prepare + prepare": 3,
    "seeds + seeds": 2,
    "cross-fit + cross-fit": 2,
    "auto + auto": 1,
}
"""Races of each kind in twenty."""


def race_many(
    count: int,
    seed: int,
    folder: Path,
    kinds: Sequence[str] = tuple(SHARES),
    on_race: Callable[[Race], None] = lambda race: None,
) -> Races:
    """Lets writers race `count` times, over the kinds in turn."""
    began, found = time.monotonic(), Races()
    course = _Course(write_graphs(folder / "graphs"), folder, random.Random(seed))
    turns = [kind for round_ in range(max(SHARES.values())) for kind in kinds if SHARES[kind] > round_]
    for number in range(count):
        kind = turns[number % len(turns)]
        place = folder / f"race-{number}"
        one = course.run(kind, place)
        found.found.append(one)
        on_race(one)
        if one.fault is None:  # what went wrong is kept to be looked at
            rmtree(place, ignore_errors=True)
    found.seconds = time.monotonic() - began
    return found


class _Course:
    """Where writers race, and what each would leave if it were alone."""

    def __init__(self, graphs: Path, folder: Path, chance: random.Random) -> None:
        self.graphs, self.folder, self.chance = graphs, folder, chance
        self._alone: dict[str, dict[str, str]] = {}

    def run(self, kind: str, place: Path) -> Race:
        """One race."""
        if "resume" in kind:
            self._leave_half(place)
        writers = [self._words(name, number, place) for number, name in enumerate(kind.split(" + "))]
        codes, outputs = _race(writers, place)
        if codes.count(0) != 1 or set(codes) != {0, REFUSED}:
            return Race(kind, codes, "; ".join(output.read_text()[-300:] for output in outputs))
        for code, output in zip(codes, outputs, strict=True):
            if code and not has_one_sentence(output):
                return Race(kind, codes, output.read_text()[-500:])
        winner = codes.index(0)
        if kind.startswith("auto"):  # which candidates there is time for is not the same twice
            there = (place / "leaderboard.csv").is_file() and (place / "predictions.parquet").is_file()
            return Race(kind, codes, None if there else "there is no leaderboard")
        different = differences(self._outcome_alone(kind, writers[winner], place), outcome(place))
        return Race(kind, codes, ", ".join(different) or None)

    def _words(self, name: str, number: int, place: Path) -> Words:
        """What a writer types; each trains with a seed of its own."""
        plain = self.graphs / "plain"
        train: Words = ["train", *self._settings(), "--out", place, "--seed", str(number)]
        if name == "prepare":
            return ["data", "prepare", self.graphs / "large", "--out", place]
        if name == "auto":
            return ["auto", plain, *SEARCH, "--out", place]
        if name == "resume":
            return ["train", "--resume", place]
        if name == "seeds":
            # several seeds begin with the first: of two writers, both with it
            return ["train", *self._settings(), "--out", place, "--seeds", "2", "--hidden", str(8 + 8 * number)]
        return [*train, "--cross-fit", "2"] if name == "cross-fit" else train

    def _settings(self) -> list[str]:
        return [*QUICK_RUNS["full"].words(self.graphs), "--epochs", str(EPOCHS), "--set", f"train.patience={EPOCHS}"]

    def _leave_half(self, place: Path) -> None:
        """Leaves a run in a folder whose process was killed."""
        for _ in range(MOST_TRIES):
            process = children.start(self._words("train", 0, place), place.with_suffix(".txt"))
            end = self.chance.randint(1, EPOCHS // 3)
            while process.is_alive() and count_lines(place / "metrics.jsonl") < end:
                time.sleep(0.001)
            process.kill()
            process.join()
            if not (place / "result.json").is_file():
                return
            rmtree(place)

    def _outcome_alone(self, kind: str, words: Words, place: Path) -> dict[str, str]:
        """What a writer leaves that nobody disturbs; a run that is resumed was begun as the first of two would."""
        if "resume" in words or "--resume" in words:
            words = self._words("train", 0, place)
        alone = self.folder / "alone"
        words = [alone if word == place else word for word in words]
        key = " ".join(map(str, words))
        if key not in self._alone:
            output = alone.with_suffix(".txt")
            assert children.run(words, output) == 0, output.read_text()
            self._alone[key] = outcome(alone)
            rmtree(alone)
        return self._alone[key]


def _race(writers: Sequence[Words], place: Path) -> tuple[list[int], list[Path]]:
    """Starts all writers at the same moment; their exit codes, and what they printed."""
    opens = children.gate(len(writers))
    outputs = [place.with_name(f"{place.name}-{number}.txt") for number in range(len(writers))]
    started = [children.start(words, output, opens) for words, output in zip(writers, outputs, strict=True)]
    for process in started:
        process.join()
    return [process.exitcode if process.exitcode is not None else -1 for process in started], outputs
