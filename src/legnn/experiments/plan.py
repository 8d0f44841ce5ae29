"""The runs that an experiment needs, as far as they are known, those that are finished, and their training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from legnn.datasets import CATALOG
from legnn.errors import InputError, did_you_mean
from legnn.experiments.candidates import CANDIDATES
from legnn.experiments.experiment import Experiment, Request, Variant
from legnn.experiments.planned import PlannedRun
from legnn.runs import Result, RunFolder
from legnn.sweep import Executor, Outcome, Sweep, SweepProgress


class Cell(NamedTuple):
    """One data set, backbone and variant, trained with every seed."""

    source: str
    backbone: str
    variant: Variant


class Plan:
    """An experiment as a user asked for it.

    Where several settings are tried, each variant trains all of them with the first seed, and the best on validation
    goes on: which runs are needed is known only when those are finished. `missing` is asked again until it is empty.
    """

    def __init__(self, experiment: Experiment, request: Request) -> None:
        experiment.check(request)
        self.experiment, self.request = experiment, request
        names = dict.fromkeys(variant.name for source in request.data for variant in experiment.variants(source))
        unknown = [name for name in request.only if name not in names]
        if unknown:
            close = did_you_mean(unknown[0], names)
            raise InputError(f"{experiment.name} has no row {unknown[0]!r}{close}; choose from {', '.join(names)}")
        for cell in self.cells():
            for run in self._candidates(cell):
                run.check()

    def cells(self) -> Iterator[Cell]:
        """Every data set × backbone × variant."""
        for source in self.request.data:
            variants = self.experiment.variants(source)
            for backbone in self.request.backbones:
                for variant in variants:
                    if not self.request.only or variant.name in self.request.only:
                        yield Cell(source, backbone, variant)

    def missing(self) -> list[PlannedRun]:
        """The runs that are known to be needed and not finished, each once, those of one data set together."""
        needed = dict.fromkeys(run for cell in self.cells() for run in self._needed(cell))
        return [run for run in needed if run.finished(self.request.out) is None]

    def settings_of(self, cell: Cell) -> Mapping[str, Any] | None:
        """The settings a cell goes on with; None while those it tries are not finished."""
        best = self.best_candidate(cell)
        return None if best is None else dict(self._candidates(cell)[best].values)

    def num_candidates(self, cell: Cell) -> int:
        """How many settings a cell tries."""
        return len(self._candidates(cell))

    def best_candidate(self, cell: Cell) -> int | None:
        """Which of the settings it tries a cell goes on with, from 0; None while they are not finished.

        Settings that cannot be trained on this graph are left out, as long as others can.
        """
        candidates, out = self._candidates(cell), self.request.out
        if len(candidates) == 1:
            return 0
        accuracies: dict[int, float] = {}
        for number, run in enumerate(candidates):
            if (finished := run.finished(out)) is not None:
                val = finished.result().val
                accuracies[number] = 0.0 if val is None else val["accuracy"]
            elif not run.has_failed(out):
                return None
        # the first of equals
        return max(accuracies, key=lambda number: accuracies[number], default=None)

    def runs(self, cell: Cell) -> list[RunFolder]:
        """The finished runs of a cell, one a seed. All of them are there when nothing is missing."""
        settings = self.settings_of(cell)
        planned = [] if settings is None else [self._run(cell.source, settings, seed) for seed in self._seeds]
        return [finished for run in planned if (finished := run.finished(self.request.out)) is not None]

    def results(self, cell: Cell) -> list[Result]:
        """The results of a cell, one a seed."""
        return [run.result() for run in self.runs(cell)]

    @property
    def _seeds(self) -> range:
        return range(self.request.seeds)

    def _candidates(self, cell: Cell) -> list[PlannedRun]:
        # a variant that does not depend on the backbone names one, and is trained once for all
        base = {"model.backbone": cell.backbone, **cell.variant.settings, **self.request.settings}
        # what the user or the variant gave is not tried otherwise
        settings = [
            {**candidate, **base} for candidate in (cell.variant.candidates or CANDIDATES)[: self.request.trials]
        ]
        return [self._run(cell.source, values, 0) for values in settings]

    def _needed(self, cell: Cell) -> list[PlannedRun]:
        settings = self.settings_of(cell)
        if settings is None:
            return self._candidates(cell)
        return [self._run(cell.source, settings, seed) for seed in self._seeds]

    def _run(self, source: str, settings: Mapping[str, Any], seed: int) -> PlannedRun:
        splits = CATALOG[source].num_splits if self.request.vary_split and source in CATALOG else 1
        return PlannedRun.of(source, self.request.preset, settings, seed, num_splits=splits)


def train_missing(
    missing: Callable[[], list[PlannedRun]],
    root: Path,
    executor: Executor,
    *,
    display: SweepProgress,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Outcome]:
    """Trains what `missing` returns until it returns nothing new, and returns the outcomes.

    A run that cannot be trained does not stop the others.
    """
    begun: set[PlannedRun] = set()
    outcomes: list[Outcome] = []
    while runs := [run for run in missing() if run not in begun]:
        begun.update(runs)
        display.total = len(begun)
        for outcome in Sweep(root, [run.trial for run in runs]).run(
            executor, on_event=display.on_event, should_stop=should_stop
        ):
            display.on_outcome(outcome)
            outcomes.append(outcome)
    return outcomes
