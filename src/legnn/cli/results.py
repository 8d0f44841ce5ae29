"""The commands that read runs and ensembles: `predict`, `evaluate`, `audit`, `plot` and `analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from legnn.cli.loading import loading
from legnn.cli.options import argument, flag, option, with_settings
from legnn.errors import InputError

_RUN = "Folder of a finished run, of an ensemble, or of runs with several seeds, which are averaged"
_DATA = "Another graph with the same features, such as the run's own grown since"


@with_settings("device", "postprocess", "propagation_steps", "propagation_alpha", panels=False)
def predict(
    run: Annotated[Path, argument(_RUN)],
    data: Annotated[str | None, option(_DATA)] = None,
    out: Annotated[Path | None, option("File for the predictions, .parquet or .csv")] = None,
    top: Annotated[int | None, option("Add the true label and this many most probable classes [1]")] = None,
    probabilities: Annotated[
        bool, option("Add the true label and the probability of every class", "--probabilities")
    ] = False,
    **given: Any,
) -> None:
    """Predict every node with a finished run or an ensemble, none from its own label.

    The predictions go to --out; without it to predictions.parquet, in the run's folder for the run's own graph and in
    the current folder for another graph or another post-processing.
    """
    with loading():
        from legnn.cli.display import show_notes, show_predictions
        from legnn.io import write_predictions
        from legnn.runs import Ensemble, open_run
        from legnn.runs.digests import renew_digest

    device = {name: given.pop(name) for name in ("device",) if name in given}
    found, is_as_trained = open_run(run), data is None and not given
    if given:
        if isinstance(found, Ensemble):
            raise InputError(f"{run} joins runs that have a post-processing each; leave {flag(min(given))} out")
        found = found.with_postprocess(given.pop("postprocess", found.settings.model.postprocess), **given)
    table = found.predict(data, top=top, probabilities=probabilities, **device)
    place = out or (run / "predictions.parquet" if is_as_trained else Path("predictions.parquet"))
    with renew_digest(place):
        write_predictions(place, table)
    show_predictions(table, place)
    if data is not None:
        show_notes(table.attrs.get("notes", []))


@with_settings("device", panels=False)
def evaluate(
    run: Annotated[Path, argument(_RUN)],
    data: Annotated[str | None, option(_DATA)] = None,
    out: Annotated[Path | None, option("File for all that is found, .json")] = None,
    **given: Any,
) -> None:
    """Score a finished run or an ensemble: splits, classes, confusion, calibration.

    Classes, confusion and calibration are of the test split; without one, of all labeled nodes but training nodes.
    """
    with loading():
        from legnn.analysis import evaluate_run
        from legnn.cli.display import print_path, show_evaluation
        from legnn.runs import open_run
        from legnn.typed_json import write_json

    if out is not None and out.suffix != ".json":
        raise InputError(f"an evaluation goes to a .json file, not to {out}")
    found = evaluate_run(open_run(run), data, **given)
    show_evaluation(found)
    if out is not None:
        write_json(out, found)
        print_path(out)


@with_settings("device", panels=False)
def audit(
    run: Annotated[Path, argument(_RUN)],
    data: Annotated[str | None, option("The same data, where the run had them from memory, or another graph")] = None,
    flips: Annotated[int, option("Training nodes whose labels are flipped [200]")] = 200,
    retrain: Annotated[bool, option("Also train a few epochs again with test labels flipped", "--retrain")] = False,
    out: Annotated[Path | None, option("File for all that is found, .json")] = None,
    **given: Any,
) -> None:
    """Look for leaks: nodes that saw their own label, and labels in splits, features, edges, texts and ids.

    Prints what was tried. Exits with code 1 if a leak was found.
    """
    import typer

    with loading():
        from legnn.cli.display import print_path
        from legnn.cli.label_display import show_audit
        from legnn.labels.audit import audit
        from legnn.typed_json import write_json

    if out is not None and out.suffix != ".json":
        raise InputError(f"an audit goes to a .json file, not to {out}")
    found = audit(run, data, flips=flips, retrain=retrain, **given)
    show_audit(found)
    if out is not None:
        write_json(out, found)
        print_path(out)
    if found.leaks:
        raise typer.Exit(1)


def plot(
    run: Annotated[Path, argument("Folder of a run, finished or not, or of an ensemble")],
    out: Annotated[Path | None, option("Picture, .png, .svg or .pdf [curves.png or ensemble.png in RUN]")] = None,
) -> None:
    """Draw the course of a run: accuracy, loss and, with AS-Train, pseudo labels by epoch.

    Of an ensemble: the weights and validation accuracies of its members, and the leaderboard, if there is one.
    """
    with loading():
        from legnn.analysis import draw_curves, draw_ensemble
        from legnn.cli.display import print_path
        from legnn.runs import Ensemble, RunFolder, is_ensemble_folder, is_seeds_folder

    if is_ensemble_folder(run) or is_seeds_folder(run):
        place = out or run / "ensemble.png"
        draw_ensemble(Ensemble.open(run), place)
    else:
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
    with loading():
        from legnn.analysis import analyze
        from legnn.cli.display import show_analysis

    place = out or runs[0] / "analysis"
    show_analysis(analyze(runs, place, **given), place)
