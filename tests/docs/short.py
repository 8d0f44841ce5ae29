"""Searches that are cut short by what they try, not by the clock: a busy machine changes nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from legnn.automl import search, tune
from legnn.automl.clock import Clock
from legnn.config import Settings
from legnn.runs.task_server import Signals

CANDIDATES, TRIALS, SECONDS = 2, 2, 600.0


def try_few(function: Callable, next_task: Callable, jobs: int, *, on_outcome: Callable, on_poll: Callable, **_: Any):
    """Carries out the first candidates in this process, one after the other."""
    for _number in range(CANDIDATES):
        if (task := next_task()) is not None:
            on_poll([])
            on_outcome(task, function(task, Signals()))


def shorten_trainings(epochs: int, patch: Callable[[object, str, Any], None] = setattr) -> None:
    """Makes models narrow and their trainings end after a few epochs."""
    resolve = Settings.resolve

    def small(self: Settings, facts: Any) -> Any:
        settings = resolve(self, facts)
        train = replace(settings.train, epochs=min(settings.train.epochs, epochs), folds=2)
        model = replace(settings.model, hidden=min(settings.model.hidden, 4 * settings.model.heads))
        return replace(settings, train=train, model=model)

    patch(Settings, "resolve", small)


def shorten_searches(patch: Callable[[object, str, Any], None] = setattr) -> None:
    """Makes `legnn.auto` try two candidates, and `legnn.tune` two trials, whatever their budgets."""
    start, search_settings = Clock.__init__, tune.tune

    def tune_briefly(*given: Any, trials: int | None = None, **options: Any) -> tune.TuneResult:
        return search_settings(*given, trials=min(trials or TRIALS, TRIALS), **options)

    patch(tune, "tune", tune_briefly)
    patch(search, "carry_out", try_few)
    patch(Clock, "__init__", lambda self, path, budget, **rest: start(self, path, SECONDS, **rest))
