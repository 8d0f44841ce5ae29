"""Continues any folder of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from legnn.datasets import Source
from legnn.runs.folder import folder_kind
from legnn.runs.opening import open_predictor
from legnn.runs.predictor import Predictor
from legnn.runs.session import resume_run
from legnn.search.auto import resume_search
from legnn.sweep.cross_fitting import resume_cross_fit
from legnn.sweep.seeds import resume_seeds
from legnn.sweep.tasks import Event
from legnn.training import EpochLog


def resume(
    folder: str | Path,
    data: Source | None = None,
    *,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> Predictor:
    """Continues an interrupted run, runs of several seeds, cross-fitting or a search.

    What is finished is returned as it is. On the CPU a run continues from its last checkpoint bit for bit as if it had
    not stopped.

    Args:
        folder: what `out` was.
        data: the same data again, which is needed only where they were in memory.
        on_epoch: called after every epoch.
        should_stop: called after every epoch; True writes a checkpoint and raises `Interrupted`.
        progress: whether a line shows the progress.
    """
    path = Path(folder)
    options: dict[str, Any] = {"should_stop": should_stop, "progress": progress}

    def on_event(event: Event) -> None:
        if event.log is not None:
            on_epoch(event.log)

    kind = folder_kind(path)
    if kind == "seeds":
        return resume_seeds(path, data, on_event=on_event, **options)
    if kind == "cross_fit":
        return resume_cross_fit(path, data, on_event=on_event, **options)
    if kind == "search":
        return resume_search(path, **options)
    if kind == "ensemble":
        return open_predictor(path)
    return resume_run(path, data, on_epoch=on_epoch, **options)
