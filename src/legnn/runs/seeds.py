"""The same run with several seeds: one folder each, and a summary beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from legnn.config import CommonSettings, ResolvedSettings, Settings, collect
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError, Interrupted
from legnn.files import empty_folder, write_text
from legnn.locks import LOCK, hold_folder
from legnn.notes import Note
from legnn.runs.build import check_settings
from legnn.runs.data_card import DataCard
from legnn.runs.device import select_device
from legnn.runs.digests import check_digest, write_digests
from legnn.runs.folder import RunFolder, check_free
from legnn.runs.graphs import load_graph, load_new, reload_graph
from legnn.runs.in_order import InOrder
from legnn.runs.processes import under_torchrun
from legnn.runs.progress import Callbacks, follow
from legnn.runs.resources import processes_for
from legnn.runs.result import Summary, summarize
from legnn.runs.seed_processes import SameRuns, train_all
from legnn.runs.session import resolve_for
from legnn.training import EpochLog
from legnn.typed_json import read_json, to_json, write_json

SEEDS, SETTINGS, SUMMARY = "seeds.json", "settings.yaml", "summary.json"


@dataclass(frozen=True)
class SeedList:
    """What `seeds.json` holds."""

    seeds: list[int]

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise InputError("seeds are one or more different numbers from 0 up")


def train_seeds(
    data: Source = "digits",
    *,
    seeds: int,
    preset: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    on_seed: Callable[[int], None] = lambda seed: None,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
    **common: Unpack[CommonSettings],
) -> Summary:
    """Trains with the seeds `seed, seed + 1, …` and returns mean and unbiased deviation of every score.

    With `out`, run `k` is the folder `out/seed-k`, and `out/summary.json` the summary. `resume_seeds(out)` finishes
    what is missing. The other arguments are those of `train`.

    Where one run leaves cores or GPUs idle, several are trained at the same time in as many processes, each bit for bit
    what it is alone; callbacks are called in the order of the seeds, those of a later seed when the ones before it have
    ended.
    """
    if under_torchrun():
        raise InputError("several processes train one run together; give seed, not seeds")
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, got {seeds}")
    graph, resolved = resolve_for(*load_new(collect(settings, common, preset=preset), data))
    # the digest of the data, which takes longer than many epochs, is that of the runs
    check_settings(resolved, graph, DataCard.of(graph, fingerprint=""))
    chosen = [resolved.train.seed + k for k in range(seeds)]
    with follow(Callbacks(on_epoch, should_stop), visible=progress) as callbacks:
        if out is None:
            return _train_each(graph, resolved, chosen, None, on_seed, callbacks)
        with hold_folder(Path(out)):
            _create(Path(out), resolved, chosen)
            return _train_each(graph, resolved, chosen, Path(out), on_seed, callbacks)


def _create(folder: Path, settings: ResolvedSettings, seeds: list[int]) -> None:
    check_free(folder)
    empty_folder(folder, keep=LOCK)
    text, listed = settings.to_yaml(), to_json(SeedList(seeds))
    write_digests(folder, {SETTINGS: text.encode(), SEEDS: listed.encode()})
    write_text(folder / SETTINGS, text)
    # last: a folder without it is one whose creation was cut short
    write_text(folder / SEEDS, listed)


def resume_seeds(
    out: str | Path,
    data: Source | None = None,
    *,
    on_seed: Callable[[int], None] = lambda seed: None,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> Summary:
    """Finishes an interrupted run over several seeds: finished seeds are kept, a half-done one continues."""
    folder = Path(out)
    if not is_seeds_folder(folder):
        raise InputError(f"{folder} is not a folder of several seeds: it has no {SEEDS}")
    with hold_folder(folder), follow(Callbacks(on_epoch, should_stop), visible=progress) as callbacks:
        return _resume_each(folder, data, on_seed, callbacks)


def _resume_each(folder: Path, data: Source | None, on_seed: Callable[[int], None], callbacks: Callbacks) -> Summary:
    seeds = _read_seeds(folder)
    settings = ResolvedSettings.from_yaml(folder / SETTINGS)
    check_digest(folder / SETTINGS)
    first = folder / f"seed-{seeds[0]}"
    if (first / "settings.yaml").is_file():
        run = RunFolder.open(first)
        # what was said of the first seed holds for all
        graph = replace(reload_graph(run, data), notes=run.card.notes)
    else:
        graph = load_graph(settings.data, data if data is not None else settings.data.source)
    return _train_each(graph, settings, seeds, folder, on_seed, callbacks)


def is_seeds_folder(path: Path) -> bool:
    """Whether a folder holds runs with several seeds."""
    return (path / SEEDS).is_file()


def seed_folders(path: Path) -> list[Path]:
    """Returns the folders of the runs that a folder of several seeds holds."""
    return [path / f"seed-{seed}" for seed in _read_seeds(path)]


def _read_seeds(folder: Path) -> list[int]:
    found = read_json(folder / SEEDS, SeedList).seeds
    check_digest(folder / SEEDS)
    return found


def _train_each(
    graph: GraphData,
    settings: ResolvedSettings,
    seeds: list[int],
    out: Path | None,
    on_seed: Callable[[int], None],
    callbacks: Callbacks,
) -> Summary:
    had_all = out is not None and (out / SUMMARY).is_file()
    finished = [seed for seed in seeds if out is not None and RunFolder(out / f"seed-{seed}").is_finished]
    again = [seed for seed in seeds if had_all and seed not in finished]
    device = select_device(settings.train.device)
    left = len(seeds) - len(finished)
    runs = InOrder(seeds, callbacks, on_seed)
    try:
        train_all(SameRuns(graph, settings, out), runs, processes_for(settings, graph, device, left))
        results = runs.results()
    except Interrupted as stop:
        # what continues later is all of them, not this one seed
        raise Interrupted(stop.epoch, out) from None
    summary = summarize(results)
    if again:
        text = f"Trained again, for it was no longer in the folder: seed {', '.join(map(str, again))}."
        summary = replace(summary, notes=[*summary.notes, Note("trained-again", text)])
    if out is not None:
        write_json(out / SUMMARY, summary)
    return summary
