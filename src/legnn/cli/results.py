"""The commands that read runs and ensembles: `predict` and `evaluate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from legnn.cli.loading import loading
from legnn.cli.options import SetOption, argument, option, parse_settings
from legnn.errors import InputError

_RUN = "Folder of a finished run, of an ensemble, or of runs with several seeds, which are averaged"
_DATA = "Another graph with the same features, such as the run's own grown since"


def predict(
    run: Annotated[Path, argument(_RUN)],
    data: Annotated[str | None, option(_DATA)] = None,
    out: Annotated[Path | None, option("File for the predictions, .parquet or .csv")] = None,
    top: Annotated[int | None, option("Add the true label and this many most probable classes [1]")] = None,
    probabilities: Annotated[
        bool, option("Add the true label and the probability of every class", "--probabilities")
    ] = False,
    set_: SetOption = None,
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

    values = parse_settings(set_, "train.device", "model.postprocess", "model.label_propagation.")
    device = values.pop("train.device", "auto")
    found, is_as_trained = open_run(run), data is None and not values
    if values:
        if isinstance(found, Ensemble):
            raise InputError(
                f"{run} is an ensemble; its members have their own post-processing, leave {min(values)} out"
            )
        found = replace(found, settings=found.settings.override(values))
    table = found.predict(data, top=top, probabilities=probabilities, device=device)
    place = out or (run / "predictions.parquet" if is_as_trained else Path("predictions.parquet"))
    with renew_digest(place):
        write_predictions(place, table)
    show_predictions(table, place)
    if data is not None:
        show_notes(table.attrs.get("notes", []))


def evaluate(
    run: Annotated[Path, argument(_RUN)],
    data: Annotated[str | None, option(_DATA)] = None,
    out: Annotated[Path | None, option("File for all that is found, .json")] = None,
    set_: SetOption = None,
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
    found = evaluate_run(open_run(run), data, device=parse_settings(set_, "train.device").get("train.device", "auto"))
    show_evaluation(found)
    if out is not None:
        write_json(out, found)
        print_path(out)
