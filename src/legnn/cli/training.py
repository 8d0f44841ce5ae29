"""The command `train`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from legnn.cli.loading import loading
from legnn.cli.options import argument, option, with_settings
from legnn.cli.processes import is_rank_zero, stop_on_signal
from legnn.config import PRESETS, Settings, collect
from legnn.errors import InputError
from legnn.files import free_path

if TYPE_CHECKING:
    from legnn.runs import Predictor

_PRESET_HELP = (
    "Chooses the settings that are left open: recommended, simple, paper, published, or a design such as gcnii "
    "[recommended]"
)


@with_settings
def train(
    data: Annotated[str | None, argument("A named data set or a folder of tables [digits]")] = None,
    preset: Annotated[str | None, option(_PRESET_HELP)] = None,
    config: Annotated[Path | None, option("Settings file; options on the command line win")] = None,
    out: Annotated[Path | None, option("Run folder [runs/…]")] = None,
    resume: Annotated[Path | None, option("Continue the run in this folder")] = None,
    seeds: Annotated[int | None, option("Train with this many seeds, report mean and deviation")] = None,
    cross_fit: Annotated[int | None, option("Train a model for each of this many folds, without their labels")] = None,
    *,
    settings: Mapping[str, Any],
) -> None:
    """Train on a partly labeled graph, score it, and save the run in a folder."""
    if resume is not None:
        if settings or any(value is not None for value in (data, seeds, cross_fit, preset, config, out)):
            raise InputError("--resume continues a run as it was started; give no other option with it")
        _resume(resume)
        return
    from_file = Settings() if config is None else Settings.from_yaml(config)
    collected = collect(from_file.override(settings), preset=preset)
    source = data if data is not None else collected.data.source
    if seeds is not None and "train.seed" in settings:
        raise InputError("give --seed for one run or --seeds for several, not both")
    if seeds is not None and cross_fit is not None:
        raise InputError("give --seeds or --cross-fit, not both")
    _train(source, collected, out, seeds, cross_fit)


# the library and Rich are imported when there is work for them: --help answers at once


def _train(source: str, settings: Settings, out: Path | None, seeds: int | None, folds: int | None) -> None:
    with loading():
        from legnn.runs import train as train_run
        from legnn.runs.processes import under_torchrun
        from legnn.sweep.cross_fitting import cross_fit
        from legnn.sweep.seeds import train_seeds

    if out is None and seeds is None and folds is None and under_torchrun():
        raise InputError("give --out under torchrun: a process that is started again finds its run by it")
    folder = out if out is not None else new_folder(source, settings)
    start: Callable[..., Any] = train_run
    if seeds is not None:
        start = partial(train_seeds, seeds=seeds)
    elif folds is not None:
        start = partial(cross_fit, folds=folds)
    _follow(partial(start, source, settings=settings, out=folder), folder)


def _resume(folder: Path) -> None:
    with loading():
        from legnn.search.resume import resume

    _follow(partial(resume, folder), folder)


def _follow(start: Callable[..., Predictor], folder: Path) -> None:
    """Starts training, shows its progress, and at the end its scores."""
    from legnn.cli.display import show_cross_fit, show_result, show_summary

    with stop_on_signal() as should_stop:
        predictor = start(should_stop=should_stop, progress=True)
    shows: dict[str, Callable[..., None]] = {"seeds": show_summary, "cross_fit": show_cross_fit}
    show = shows.get(predictor.kind, show_result)
    if is_rank_zero():
        show(predictor.summary, folder)


def new_folder(source: str, settings: Settings) -> Path:
    """Returns `runs/DATA`, with the model where it was chosen, and with a number where that is taken."""
    values = {**PRESETS[settings.preset].model, **settings.values}
    model = [
        str(values[f"model.{part}"]) for part in ("architecture", "backbone", "labels") if f"model.{part}" in values
    ]
    preset = [settings.preset] if not model and settings.preset != Settings.preset else []
    as_train = ["as-train"] if values.get("self_training.as_train") else []
    return free_path(Path("runs") / "-".join([Path(source).resolve().name, *model, *preset, *as_train]))
