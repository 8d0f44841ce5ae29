"""The same run with several seeds: one folder each, and a summary beside them."""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data, HeteroData

from legnn.config.settings import Settings, resolve
from legnn.data import GraphData
from legnn.errors import InputError, Interrupted
from legnn.files import write_text
from legnn.runs.folder import RunFolder, check_free
from legnn.runs.session import OnEpoch, Run, begin, check_settings, finished, go_on, load_for, reload
from legnn.training import under_torchrun

OnSeed = Callable[[int], None]


def train_seeds(
    data: GraphData | Data | HeteroData | str | Path = "digits",
    settings: Settings | None = None,
    *,
    seeds: int,
    out: str | Path | None = None,
    on_seed: OnSeed = lambda seed: None,
    on_epoch: OnEpoch | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> dict[str, Any]:
    """Train with the seeds `seed, seed + 1, …` and give their summary: mean and unbiased deviation of every score.

    With `out`, run `k` is the folder `out/seed-k`, and `out/summary.json` the summary. A call on a folder in which some
    of the runs are there already (`resume_seeds`) finishes what is missing.
    """
    if under_torchrun():
        raise InputError("several processes train one run together; give --seed for one, not --seeds")
    settings = (settings or Settings()).override(**overrides)
    loaded, settings = load_for(settings, data)
    settings = resolve(settings, loaded.facts())
    check_settings(settings, loaded)
    chosen = _seeds(settings, seeds)
    place = None if out is None else Path(out)
    if place is not None:
        check_free(place)
        write_text(place / "settings.yaml", settings.to_yaml())
        write_text(place / "seeds.json", json.dumps({"seeds": chosen}) + "\n")
    return _train_each(loaded, settings, chosen, place, on_seed, on_epoch, should_stop)


def resume_seeds(
    out: str | Path,
    data: GraphData | Data | HeteroData | None = None,
    *,
    on_seed: OnSeed = lambda seed: None,
    on_epoch: OnEpoch | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Finish a run over several seeds that was cut off: finished seeds are kept, a half-done one goes on."""
    place = Path(out)
    try:
        seeds: list[int] = json.loads((place / "seeds.json").read_text(encoding="utf-8"))["seeds"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{place} is not a folder of several seeds: it has no readable seeds.json") from None
    settings = Settings.from_yaml(place / "settings.yaml")
    first = place / f"seed-{seeds[0]}"
    if (first / "settings.yaml").is_file():
        loaded = reload(RunFolder.open(first), data)
    else:
        loaded, settings = load_for(settings, data if data is not None else settings.data.source)
    return _train_each(loaded, settings, seeds, place, on_seed, on_epoch, should_stop)


def is_seeds_folder(path: Path) -> bool:
    """Whether a folder holds runs with several seeds."""
    return (path / "seeds.json").is_file()


def _seeds(settings: Settings, count: int) -> list[int]:
    if count < 1:
        raise InputError(f"seeds must be at least 1, got {count}")
    return list(range(settings.train.seed, settings.train.seed + count))


def _train_each(
    data: GraphData,
    settings: Settings,
    seeds: list[int],
    out: Path | None,
    on_seed: OnSeed,
    on_epoch: OnEpoch | None,
    should_stop: Callable[[], bool],
) -> dict[str, Any]:
    runs: list[Run] = []
    for seed in seeds:
        on_seed(seed)
        folder = None if out is None else out / f"seed-{seed}"
        with_seed = replace(settings, train=replace(settings.train, seed=seed))
        try:
            if folder is None or not (folder / "settings.yaml").is_file():
                if folder is not None:
                    # a kill may have come while the folder was being made: its settings are written last
                    shutil.rmtree(folder, ignore_errors=True)
                runs.append(begin(data, with_seed, folder, on_epoch=on_epoch, should_stop=should_stop))
                continue
            run = RunFolder.open(folder)
            if run.is_finished:
                runs.append(finished(run))
            else:
                runs.append(go_on(run, data, on_epoch=on_epoch, should_stop=should_stop))
        except Interrupted as stop:
            # what goes on later is the whole, not the one seed
            raise Interrupted(stop.epoch, out) from None
    summary = summarize([run.result for run in runs])
    if out is not None:
        write_text(out / "summary.json", json.dumps(summary, indent=1) + "\n")
    return summary


def summarize(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and unbiased deviation of every score; a deviation of one run is null."""

    def over(split: str, metric: str) -> dict[str, float | None]:
        values = [result[split][metric] for result in results]
        return {
            "mean": statistics.fmean(values),
            "std": statistics.stdev(values) if len(values) > 1 else None,
        }

    scored = [split for split in ("val", "test", "train_out_of_fold") if results[0][split] is not None]
    return {
        **{split: {metric: over(split, metric) for metric in ("accuracy", "macro_f1")} for split in scored},
        "seeds": [result["seed"] for result in results],
        "seconds": round(sum(result["seconds"] for result in results), 3),
        "parameters": results[0]["parameters"],
        "versions": results[0]["versions"],
        "notes": results[0]["notes"],
    }
