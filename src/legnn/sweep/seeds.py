"""The same run with several seeds: a sweep, and a summary of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from legnn.config import CommonSettings, Settings, collect
from legnn.datasets import Source
from legnn.errors import InputError
from legnn.locks import hold_folder
from legnn.notes import Note
from legnn.runs.build import check_settings
from legnn.runs.data_card import DataCard
from legnn.runs.ensemble import Seeds
from legnn.runs.folder import SEEDS, SUMMARY, RunFolder, seed_name
from legnn.runs.processes import under_torchrun
from legnn.runs.result import summarize
from legnn.runs.seeds import SeedPlan, read_seed_plan
from legnn.runs.session import resolve_for
from legnn.sweep.executors import executor_for
from legnn.sweep.plan import Trial
from legnn.sweep.sweep import create_folder, sweep_folder, train_trials
from legnn.sweep.tasks import Event, load_data
from legnn.typed_json import write_json


def train_seeds(
    data: Source = "digits",
    *,
    seeds: int,
    preset: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
    **common: Unpack[CommonSettings],
) -> Seeds:
    """Trains with the seeds `seed, seed + 1, …` and returns the runs, which predict together.

    >>> legnn.train_seeds("cora", seeds=5).summary.test["accuracy"]     # mean and unbiased deviation

    With `out`, run `k` is the folder `out/seed-k`, and `out/summary.json` the summary. `resume(out)` finishes
    what is missing. `on_event` is called with every epoch of every seed; the other arguments are those of `train`.

    Where one run leaves cores or GPUs idle, several are trained at the same time in as many processes, each bit for bit
    what it is alone.
    """
    if under_torchrun():
        raise InputError("several processes train one run together; give `seed`, not `seeds`")
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, got {seeds}")
    graph, loaded, source = load_data(collect(settings, common, preset=preset), data)
    graph, resolved = resolve_for(graph, loaded)
    # the digest of the data, which takes longer than many epochs, is that of the runs
    check_settings(resolved, graph, DataCard.of(graph, fingerprint=""))
    first = resolved.train.seed
    plan = SeedPlan(seeds=[first + k for k in range(seeds)], preset=loaded.preset, values=dict(loaded.values))
    with sweep_folder(out) as folder:
        create_folder(folder, SEEDS, plan)
        return _train(plan, source, folder, on_event, should_stop, progress=progress, is_temporary=out is None)


def resume_seeds(
    out: str | Path,
    data: Source | None = None,
    *,
    on_event: Callable[[Event], None] = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> Seeds:
    """Finishes an interrupted run over several seeds: finished seeds are read, a half-done one continues."""
    plan = read_seed_plan(Path(out))
    with hold_folder(Path(out)):
        return _train(plan, data, Path(out), on_event, should_stop, progress=progress)


def _train(
    plan: SeedPlan,
    data: Source | None,
    folder: Path,
    on_event: Callable[[Event], None],
    should_stop: Callable[[], bool],
    *,
    progress: bool,
    is_temporary: bool = False,
) -> Seeds:
    graph, settings, source = load_data(plan.settings, data, folder)
    runs = {seed_name(seed): RunFolder(folder / seed_name(seed)) for seed in plan.seeds}
    missing = [name for name, run in runs.items() if not run.is_finished]
    trials = [
        Trial(name=seed_name(seed), data=source, settings=settings.override({"train.seed": seed}))
        for seed in plan.seeds
    ]
    executor = executor_for(graph, settings.resolve(graph.facts()), len(missing))
    train_trials(folder, trials, executor, on_event, should_stop, progress=progress)
    summary = summarize([run.result() for run in runs.values()])
    if missing and (folder / SUMMARY).is_file():
        text = f"Trained again, for it was no longer in the folder: {', '.join(missing)}."
        summary = replace(summary, notes=[*summary.notes, Note("trained-again", text)])
    write_json(folder / SUMMARY, summary)
    return Seeds.open(folder).with_graph(graph, None if is_temporary else folder)
