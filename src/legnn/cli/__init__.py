"""The command `legnn`: it reads options, and leaves the work to the library and the showing to `display`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from legnn.cli.display import (
    complain,
    epoch_progress,
    say,
    say_place,
    show_notes,
    show_predictions,
    show_result,
    show_statistics,
    show_summary,
)
from legnn.cli.options import (
    MODEL,
    SELF,
    TRAINING,
    Device,
    IdColumnOption,
    LabelColumnOption,
    LabelUsage,
    MissingFeaturesOption,
    Norm,
    Normalize,
    Precision,
    RemoveDuplicatesOption,
    Residual,
    SelfLoopsOption,
    SourceColumnOption,
    SplitColumnOption,
    SplitOption,
    TargetColumnOption,
    TextChannelsOption,
    TextOption,
    TypeChannelsOption,
    UndirectedOption,
    WeightColumnOption,
    option,
    plain,
)
from legnn.errors import InputError, Interrupted

app = typer.Typer(
    help="Classify the nodes of a partly labeled graph by putting the labels into the graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


SECONDS_FOR_THE_FIRST = 20.0
"""How long the other processes wait for the first one to say what is wrong; torchrun ends them when it has."""


@app.command()
def train(
    data: Annotated[str | None, typer.Argument(help=plain("A named data set or a folder of tables [digits]"))] = None,
    split: SplitOption = None,
    text: TextOption = None,
    text_channels: TextChannelsOption = None,
    type_channels: TypeChannelsOption = None,
    missing_features: MissingFeaturesOption = None,
    id_column: IdColumnOption = None,
    label_column: LabelColumnOption = None,
    split_column: SplitColumnOption = None,
    source_column: SourceColumnOption = None,
    target_column: TargetColumnOption = None,
    weight_column: WeightColumnOption = None,
    undirected: UndirectedOption = None,
    remove_duplicates: RemoveDuplicatesOption = None,
    self_loops: SelfLoopsOption = None,
    backbone: Annotated[
        str | None, option(MODEL, "gcn, sage, gat; or gatv2, transformer, gin, lifted from PyG [gcn]")
    ] = None,
    labels: Annotated[LabelUsage | None, option(MODEL, "How labels enter [enhanced]")] = None,
    normalize: Annotated[
        Normalize | None, option(MODEL, "Within each relation, or over the whole label graph [relation]")
    ] = None,
    hidden: Annotated[int | None, option(MODEL, "Hidden channels, over all heads [by labels]")] = None,
    layers: Annotated[int | None, option(MODEL, "Layers [by labels]")] = None,
    heads: Annotated[int | None, option(MODEL, "Attention heads [4]")] = None,
    target_attention: Annotated[bool | None, option(MODEL, "gat: attend to the target, too [yes]")] = None,
    symmetric_norm: Annotated[bool | None, option(MODEL, "gat: scale messages by degrees [no]")] = None,
    residual: Annotated[Residual | None, option(MODEL, "Residual connections [by labels]")] = None,
    norm: Annotated[Norm | None, option(MODEL, "Normalization after each layer [by labels]")] = None,
    dropout: Annotated[float | None, option(MODEL, "Dropout after each layer [by labels]")] = None,
    input_dropout: Annotated[float | None, option(MODEL, "Dropout of the features [by labels]")] = None,
    label_features: Annotated[
        str | None, option(MODEL, "one-hot, class-mean, or given (by the table labels) [one-hot]")
    ] = None,
    label_edges: Annotated[
        bool | None, option(MODEL, "Use the label–label edges of the table label_edges [where there are any]")
    ] = None,
    label_at_input: Annotated[
        bool | None, option(MODEL, "Give a node its own label's embedding at the input [by labels]")
    ] = None,
    scale: Annotated[str | None, option(MODEL, "Features: none, row, entries or standard [by data]")] = None,
    lr: Annotated[float | None, option(TRAINING, "Learning rate [by labels]")] = None,
    weight_decay: Annotated[float | None, option(TRAINING, "L2 penalty on the input projection [by labels]")] = None,
    epochs: Annotated[int | None, option(TRAINING, "Most epochs [by labels]")] = None,
    patience: Annotated[int | None, option(TRAINING, "Epochs without improvement before stopping [100]")] = None,
    alpha: Annotated[float | None, option(TRAINING, "Training node selection rate [by labels]")] = None,
    selection: Annotated[bool | None, option(TRAINING, "Training node selection [yes]")] = None,
    seed: Annotated[int | None, option(TRAINING, "Seed of the run [0]")] = None,
    seeds: Annotated[int | None, option(TRAINING, "Run so many seeds and report mean and deviation")] = None,
    folds: Annotated[int | None, option(TRAINING, "Folds in which training nodes are predicted [10]")] = None,
    device: Annotated[Device | None, option(TRAINING, "Where to train [auto]")] = None,
    precision: Annotated[
        Precision | None, option(TRAINING, "Of features and products [auto: fp32 on the CPU, tf32 on a GPU]")
    ] = None,
    batch: Annotated[
        str | None, option(TRAINING, "Nodes in a step, full, or auto: full where it fits in memory [auto]")
    ] = None,
    fanout: Annotated[
        str | None, option(TRAINING, "Neighbors drawn in each layer of a mini-batch, from the input side [15,10,5]")
    ] = None,
    checkpoint_seconds: Annotated[float | None, option(TRAINING, "Least time between checkpoints [5]")] = None,
    as_train: Annotated[bool | None, option(SELF, "Adaptive self-training [no]", "--as-train/--no-as-train")] = None,
    threshold: Annotated[float | None, option(SELF, "t: least p·TC of a pseudo label [0.7]")] = None,
    delta: Annotated[float | None, option(SELF, "δ: epoch at which TC is one half [10]")] = None,
    weight: Annotated[float | None, option(SELF, "λ: weight of pseudo labels in the loss [0.5]")] = None,
    use_tc: Annotated[bool | None, option(SELF, "Training confidence [yes]", "--tc/--no-tc")] = None,
    use_ec: Annotated[bool | None, option(SELF, "Evaluating confidence [yes]", "--ec/--no-ec")] = None,
    candidates: Annotated[
        str | None, option(SELF, "Who may get one: unlabeled (all but training nodes) or unsplit [unlabeled]")
    ] = None,
    out: Annotated[Path | None, typer.Option(help=plain("Run folder [runs/…]"), show_default=False)] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder", show_default=False)] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings file; options given beside it win", show_default=False)
    ] = None,
) -> None:
    """Train on a partly labeled graph, score it, and keep the run in a folder.

    Settings marked "by labels" are chosen from how many labels the graph has.
    """
    given = _given(locals(), besides=("data", "out", "resume", "config", "seeds"))
    if batch is not None:
        given["batch"] = int(batch) if batch.isascii() and batch.isdigit() else batch
    if resume is not None:
        if given or data is not None or out is not None or config is not None or seeds is not None:
            raise InputError("--resume goes on with a run as it was begun; give no other option beside it")
        _resume(resume)
        return
    # the library is imported when there is work for it: --help answers at once
    from legnn.config.settings import Settings

    settings = (Settings() if config is None else Settings.from_yaml(config)).override(**given)
    source = data if data is not None else settings.data.source
    if seeds is not None:
        if seed is not None:
            raise InputError("give --seed for one run or --seeds for several, not both")
        _train_seeds(source, settings, seeds, out)
        return
    _train(source, settings, out)


def _given(values: dict[str, Any], besides: tuple[str, ...]) -> dict[str, Any]:
    """The settings among the values of a command's options: those that were given."""
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in values.items()
        if value is not None and name not in besides
    }


def _train(source: str, settings: Any, out: Path | None) -> None:
    from legnn.runs import train as train_run
    from legnn.training import under_torchrun

    if out is None and under_torchrun():
        raise InputError("give --out under torchrun: a process that is started again finds its run by it")
    folder = out if out is not None else _new_folder(source, settings)
    with _stop_on_signal() as should_stop, epoch_progress() as progress:
        run = train_run(source, settings, out=folder, on_epoch=progress.epoch, should_stop=should_stop)
    if _speaks():
        show_result(run.result, folder)


def _train_seeds(source: str, settings: Any, seeds: int, out: Path | None) -> None:
    from legnn.runs import train_seeds

    folder = out if out is not None else _new_folder(source, settings)
    with _stop_on_signal() as should_stop, epoch_progress() as progress:
        summary = train_seeds(
            source,
            settings,
            seeds=seeds,
            out=folder,
            on_seed=progress.seed,
            on_epoch=progress.epoch,
            should_stop=should_stop,
        )
    show_summary(summary, folder)


def _resume(folder: Path) -> None:
    from legnn.runs import is_seeds_folder, resume_seeds
    from legnn.runs import resume as resume_run

    with _stop_on_signal() as should_stop, epoch_progress() as progress:
        if is_seeds_folder(folder):
            summary = resume_seeds(folder, on_seed=progress.seed, on_epoch=progress.epoch, should_stop=should_stop)
        else:
            run = resume_run(folder, on_epoch=progress.epoch, should_stop=should_stop)
    if is_seeds_folder(folder):
        show_summary(summary, folder)
    elif _speaks():
        show_result(run.result, folder)


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run")],
    data: Annotated[
        str | None,
        typer.Option(
            help="Another graph with the same features, such as the run's own grown since", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the predictions, .parquet or .csv", show_default=False)
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to compute")] = Device.auto,
) -> None:
    """Predict every node with a finished run, none from its own label.

    The predictions go to --out; without it to predictions.parquet, in the run's folder for the run's own graph and in
    the current folder for another.
    """
    from legnn.io import write_predictions
    from legnn.runs import predict as predict_nodes

    table = predict_nodes(run, data, device=device.value)
    place = out or (Path("predictions.parquet") if data is not None else run / "predictions.parquet")
    write_predictions(place, table)
    show_predictions(table, place)


@app.command()
def prepare(
    source: Annotated[str, typer.Argument(help="A named data set or a folder of tables", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder for the prepared graph, new or empty", show_default=False)],
    split: SplitOption = None,
    text: TextOption = None,
    text_channels: TextChannelsOption = None,
    type_channels: TypeChannelsOption = None,
    missing_features: MissingFeaturesOption = None,
    id_column: IdColumnOption = None,
    label_column: LabelColumnOption = None,
    split_column: SplitColumnOption = None,
    source_column: SourceColumnOption = None,
    target_column: TargetColumnOption = None,
    weight_column: WeightColumnOption = None,
    undirected: UndirectedOption = None,
    remove_duplicates: RemoveDuplicatesOption = None,
    self_loops: SelfLoopsOption = None,
) -> None:
    """Read, check and prepare a graph once, and keep it as arrays that later runs only map into memory.

    Give the folder to the other commands in the place of a folder of tables.
    """
    given = _given(locals(), besides=("source", "out"))
    from legnn.data import statistics
    from legnn.datasets import prepare_folder

    data = prepare_folder(source, out, **given)
    show_statistics([statistics(data)])
    show_notes(data.notes)
    say_place(out)


@app.command()
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="A named data set or a folder of tables", show_default=False)
    ] = None,
    split: Annotated[int | None, typer.Option(help="Which of its splits", show_default=False)] = None,
) -> None:
    """Show the named data sets and their statistics, or those of one.

    Without a name, nothing is downloaded: sets that are not on this machine are listed without figures.
    """
    from legnn.data import Statistics, statistics
    from legnn.datasets import CATALOG, NamedSet, data_folder, load, without_downloads

    if name is not None:
        data = load(name, split=split)
        show_statistics([statistics(data)])
        if name in CATALOG:
            say(f"{CATALOG[name].about}; splits: {CATALOG[name].splits}")
        show_notes(data.notes)
        return

    def found(entry: NamedSet) -> Statistics | str:
        try:
            with without_downloads():
                return statistics(load(entry.name))
        except InputError:
            return entry.name

    caption = "a set that is not here is downloaded when it is first used"
    show_statistics(map(found, CATALOG.values()), f"under {data_folder()}", caption)


@app.command()
def plot(
    run: Annotated[Path, typer.Argument(help="Folder of a run, finished or not")],
    out: Annotated[
        Path | None, typer.Option(help=plain("Picture, .png, .svg or .pdf [RUN/curves.png]"), show_default=False)
    ] = None,
) -> None:
    """Draw the course of a run: accuracy, loss and, with AS-Train, pseudo labels by epoch."""
    from legnn.analysis import draw_curves
    from legnn.runs import RunFolder

    place = out or run / "curves.png"
    draw_curves(RunFolder.open(run), place)
    say_place(place)


def _speaks() -> bool:
    """Whether this process is the one that tells the user; `torchrun` numbers those it starts."""
    return os.environ.get("RANK", "0") == "0"


def _wait_for_the_first() -> None:
    """Let the first process say what all of them found: `torchrun` ends the others when one has ended.

    One that is still there after a while found something of its own, and says so itself.
    """
    if not _speaks():
        time.sleep(SECONDS_FOR_THE_FIRST)


def _new_folder(source: str, settings: Any) -> Path:
    """`runs/DATA-BACKBONE-LABELS[-as-train]`, with a number where that is taken."""
    parts = [Path(source).resolve().name, settings.model.backbone, settings.model.labels]
    name = "-".join(parts + (["as-train"] if settings.as_train else []))
    place, number = Path("runs") / name, 2
    while place.exists():
        place, number = Path("runs") / f"{name}-{number}", number + 1
    return place


@contextmanager
def _stop_on_signal() -> Iterator[Any]:
    """Ctrl-C (or a scheduler's SIGTERM) ends training after the epoch in flight; a second one ends it at once."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main() -> None:
    """Run the command; a mistake of the user's is one sentence and exit code 2."""
    try:
        app()
    except (InputError, OSError) as error:
        # a full disk or a folder that may not be written is no fault of the code, either
        _wait_for_the_first()
        complain(str(error))
        sys.exit(2)
    except Interrupted as stop:
        how = "" if stop.folder is None else f"; go on with: legnn train --resume {stop.folder}"
        if _speaks():
            complain(f"interrupted after epoch {stop.epoch}{how}", error=False)
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
