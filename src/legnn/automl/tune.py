"""Search of settings with Optuna: every trial is a run in a folder, and the same call continues a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pandas as pd

from legnn.automl.journal import open_study
from legnn.automl.study import Running, Space, Study, Trial, Tuned
from legnn.automl.trial_runs import train_trial
from legnn.config import CommonSettings, ResolvedSettings, Settings, collect
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError, Interrupted
from legnn.files import write_text
from legnn.runs import Result, RunFolder
from legnn.runs.graphs import load_new
from legnn.sweep.held_out import require_validation
from legnn.training import EpochLog

TRIALS = 50
"""Trials where neither their number nor a time is given."""
MOST_REPEATS = 20
"""So many suggestions in a row of settings that were tried already end a search: little else is left."""


class Progress(NamedTuple):
    """Where a search stands."""

    trial: int
    """The number of the trial in flight, from 0."""
    trials: int | None
    """How many there will be at most; None if time alone ends the search."""
    best: float | None
    """Best validation accuracy of a trial that has ended."""
    seconds_left: float | None
    log: EpochLog | None = None
    """The last epoch of the trial in flight."""


@dataclass(frozen=True, kw_only=True)
class TuneResult:
    """What a search came to."""

    folder: Path
    trials: list[Trial]
    best: Trial
    settings: ResolvedSettings
    """Of the best trial; `best.yaml`, too."""
    result: Result
    """Of the best trial. Its test scores were not looked at before it was the best."""

    def table(self) -> pd.DataFrame:
        """A row for each trial: number, state, validation accuracy, seconds, why, and the settings that were varied."""
        columns = {"trial": "number", "state": "state", "val": "val", "seconds": "seconds", "why": "why"}
        rows = [{**{name: getattr(one, key) for name, key in columns.items()}, **one.chosen} for one in self.trials]
        return pd.DataFrame(rows)


def tune(
    data: Source = "digits",
    *,
    preset: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    trials: int | None = None,
    budget: float | None = None,
    space: Space = "full",
    out: str | Path,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
    **common: Unpack[CommonSettings],
) -> TuneResult:
    """Searches settings by validation accuracy with Optuna, and returns the best.

    The same call with the same folder continues a search: trials that have ended are kept, and one that was interrupted
    or killed goes on from its checkpoint.

    Args:
        data: as in `train`.
        settings: those in it, and the common ones, are fixed; the others are searched. `seed` is that of the search
            and of every run.
        trials: at most so many, over all calls; 50 where there is no budget either, or all of the paper's grid.
        budget: seconds of trials, over all calls; the trial in flight ends with the epoch that exceeds them.
        space: `full`, all settings that matter for the model (`automl/space.py`), or `paper`, the grid of the paper.
        out: folder of the search: `trials/N` the runs, `study.log`, `trials.csv` and `best.yaml`.
        on_progress: called after every epoch.
        should_stop: asked after every epoch; True writes a checkpoint and raises `Interrupted`.
    """
    if space not in ("full", "paper"):
        raise InputError(f"space must be full or paper, got {space!r}")
    for name, least in (("trials", trials), ("budget", budget)):
        if least is not None and not least > 0:
            raise InputError(f"{name} must be above 0, got {least}")
    collected = collect(settings, common, preset=preset)
    seed = collected.values.get("train.seed", 0)
    collected = collected.override({"train.seed": seed})
    if space == "paper" and collected.preset == Settings.preset:
        # the settings that the grid does not vary are the paper's, too
        collected = collected.override({"preset": "paper"})
    graph, loaded = load_new(collected, data)
    require_validation(graph)
    tuned = Tuned(loaded, graph.facts(), space, seed)
    folder = Path(out)
    with open_study(folder, tuned, graph.fingerprint()) as study:
        most = min((number for number in (trials, study.size) if number is not None), default=None)
        most = most or (TRIALS if budget is None else None)
        search = _Search(study, tuned, graph, folder, most, budget)
        search.run(on_progress, should_stop)
        return _finish(folder, study)


class _Search:
    """Trains one trial after the other until there are enough or the time is over."""

    def __init__(
        self, study: Study, tuned: Tuned, graph: GraphData, folder: Path, trials: int | None, budget: float | None
    ) -> None:
        self.study, self.tuned, self.graph, self.folder = study, tuned, graph, folder
        self.trials, self.budget = trials, budget

    def run(self, on_progress: Callable[[Progress], None], should_stop: Callable[[], bool]) -> None:
        """Goes on with trials that were interrupted, then begins others."""
        began, repeats = time.perf_counter(), 0
        for trial in self.study.unfinished():
            self._train(trial, began, on_progress, should_stop)
            began = time.perf_counter()
        while repeats < MOST_REPEATS and not self._is_over():
            if should_stop():
                raise Interrupted(None, self.folder)
            began = time.perf_counter()
            trial = self.study.next()
            earlier = self.study.earlier(trial)
            if earlier is None:
                repeats = 0
                self._train(trial, began, on_progress, should_stop)
            else:
                repeats += 1
                trial.end_as(earlier)

    def _is_over(self) -> bool:
        has_all = self.trials is not None and len(self.study.trials()) >= self.trials
        return has_all or (self.budget is not None and self.study.seconds >= self.budget)

    def _train(
        self,
        trial: Running,
        began: float,
        on_progress: Callable[[Progress], None],
        should_stop: Callable[[], bool],
    ) -> None:
        spent = self.study.seconds
        ended = [one.val for one in self.study.trials() if one.state == "complete" and one.val is not None]

        def left() -> float | None:
            return None if self.budget is None else max(self.budget - spent - (time.perf_counter() - began), 0.0)

        def show(log: EpochLog | None = None) -> None:
            on_progress(Progress(trial.number, self.trials, max(ended, default=None), left(), log))

        show()
        try:
            train_trial(
                trial,
                self.graph,
                self.tuned,
                self.folder / "trials" / str(trial.number),
                began=began,
                is_over=lambda: left() == 0,
                should_stop=should_stop,
                on_epoch=show,
            )
        except Interrupted as stop:
            raise Interrupted(stop.epoch, self.folder) from None


def _finish(folder: Path, study: Study) -> TuneResult:
    """Writes `trials.csv` and `best.yaml`."""
    trials = study.trials()
    complete = [one for one in trials if one.state == "complete" and (folder / "trials" / str(one.number)).is_dir()]
    if not complete:
        raise InputError(f"none of {len(trials)} trials could be trained; the last: {trials[-1].why}")
    # of equal ones the first
    best = max(complete, key=lambda one: (one.val or 0.0, -one.number))
    run = RunFolder.open(folder / "trials" / str(best.number))
    found = TuneResult(folder=folder, trials=trials, best=best, settings=run.settings, result=run.result())
    write_text(folder / "best.yaml", found.settings.to_yaml())
    write_text(folder / "trials.csv", found.table().to_csv(index=False))
    return found
