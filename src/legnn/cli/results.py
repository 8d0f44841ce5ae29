"""The commands that read runs: `predict`, `plot` and `analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from legnn.cli.options import argument, option, with_settings


@with_settings("device", "postprocess", "propagation_steps", "propagation_alpha", panels=False)
def predict(
    run: Annotated[Path, argument("Folder of a finished run")],
    data: Annotated[
        str | None, option("Another graph with the same features, such as the run's own grown since")
    ] = None,
    out: Annotated[Path | None, option("File for the predictions, .parquet or .csv")] = None,
    **given: Any,
) -> None:
    """Predict every node with a finished run, none from its own label.

    The predictions go to --out; without it to predictions.parquet, in the run's folder for the run's own graph and in
    the current folder for another graph or another post-processing.
    """
    from legnn.cli.display import show_predictions
    from legnn.io import write_predictions
    from legnn.runs import Run

    device = {name: given.pop(name) for name in ("device",) if name in given}
    found, is_as_trained = Run.open(run), data is None and not given
    if given:
        found = found.with_postprocess(given.pop("postprocess", found.settings.model.postprocess), **given)
    table = found.predict(data, **device)
    place = out or (run / "predictions.parquet" if is_as_trained else Path("predictions.parquet"))
    write_predictions(place, table)
    show_predictions(table, place)


def plot(
    run: Annotated[Path, argument("Folder of a run, finished or not")],
    out: Annotated[Path | None, option("Picture, .png, .svg or .pdf [RUN/curves.png]")] = None,
) -> None:
    """Draw the course of a run: accuracy, loss and, with AS-Train, pseudo labels by epoch."""
    from legnn.analysis import draw_curves
    from legnn.cli.display import print_path
    from legnn.runs import RunFolder

    place = out or run / "curves.png"
    draw_curves(RunFolder.open(run), place)
    print_path(place)


@with_settings("device", panels=False)
def analyze(
    runs: Annotated[list[Path], argument("Folders of finished runs, or of runs with several seeds")],
    out: Annotated[Path | None, option("Folder for tables and pictures [analysis in the first RUN]")] = None,
    **given: Any,
) -> None:
    """Measure finished runs: representations, calibration, pseudo labels, label similarity, cost.

    Prints a table of all runs. Tables and pictures of each go to a folder of its own in --out.
    """
    from legnn.analysis import analyze
    from legnn.cli.display import show_analysis

    place = out or runs[0] / "analysis"
    show_analysis(analyze(runs, place, **given), place)
