"""The commands that read runs and ensembles: `predict` and `evaluate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from legnn.cli.loading import loading
from legnn.cli.options import SetOption, argument, check_suffix, option, parse_device, parse_settings
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
        from legnn.runs import open_predictor
        from legnn.runs.folder import PREDICTIONS
        from legnn.runs.predictor import predict_with_probabilities

    values = parse_settings(set_, "train.device", "model.postprocess", "model.label_propagation.")
    device = values.pop("train.device", "auto")
    if top is not None and probabilities:
        raise InputError("`top` adds the most probable classes and `probabilities` all of them; give one of the two")
    predictor, is_as_trained = open_predictor(run), data is None and not values
    if values:
        if predictor.kind != "run":
            raise InputError(
                f"{run} is an ensemble; its members have their own post-processing, leave {min(values)} out"
            )
        predictor = predictor.members[0]
        predictor = replace(predictor, settings=predictor.settings.override(values))
    if probabilities:
        table = predict_with_probabilities(predictor, data, device=device)
    else:
        table = predictor.predict(data, top, device=device)
    path = out or (run / PREDICTIONS if is_as_trained else Path(PREDICTIONS))
    write_predictions(path, table)
    show_predictions(table, path)
    if data is not None:
        show_notes(table.attrs.get("notes", []))


def evaluate(
    run: Annotated[Path, argument(_RUN)],
    data: Annotated[str | None, option(_DATA)] = None,
    out: Annotated[Path | None, option("File for all scores, .json")] = None,
    set_: SetOption = None,
) -> None:
    """Score a finished run or an ensemble: splits, classes, confusion, calibration.

    Classes, confusion and calibration are of the test split; without one, of all labeled nodes but training nodes.
    """
    with loading():
        from legnn.cli.console import print_path
        from legnn.cli.display import show_evaluation
        from legnn.runs import open_predictor
        from legnn.typed_json import write_json

    check_suffix(out, "an evaluation goes", ".json")
    evaluation = open_predictor(run).evaluate(data, device=parse_device(set_))
    show_evaluation(evaluation)
    if out is not None:
        write_json(out, evaluation)
        print_path(out)
