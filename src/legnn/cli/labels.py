"""The commands `labels …`, on the given labels themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from legnn.cli.options import argument, option, with_settings
from legnn.cli.processes import stop_on_signal
from legnn.config import SECTIONS
from legnn.errors import InputError

labels = typer.Typer(no_args_is_help=True, help="Which given labels look wrong.")


@labels.command()
@with_settings(*SECTIONS, without=("source", "folds"))
def check(
    source: Annotated[str, argument("Folder of a finished run or ensemble, a named data set, or a folder of tables")],
    out: Annotated[Path | None, option("File for all labels, .parquet or .csv [labels.csv]")] = None,
    folds: Annotated[int, option("Parts of the training nodes, judged by models without them [5]")] = 5,
    foldings: Annotated[int, option("Other divisions into folds, averaged [2]")] = 2,
    most: Annotated[int, option("Rows that are printed [20]")] = 20,
    preset: Annotated[str | None, option("What chooses the settings that are left open [recommended]")] = None,
    **given: Any,
) -> None:
    """Rank the given labels by how likely they are wrong, with the evidence.

    No model judges a label it was trained on. Of a run, its data and settings are used.
    """
    from legnn.cli.display import print_path, show_label_check, show_notes
    from legnn.io import write_predictions
    from legnn.labels.check import check_labels

    place = out or Path("labels.csv")
    if place.suffix not in (".parquet", ".csv"):
        raise InputError(f"checked labels go to a .parquet or a .csv file, not to {place}")
    if preset is not None:
        given["preset"] = preset
    with stop_on_signal() as should_stop:
        found = check_labels(source, folds=folds, foldings=foldings, should_stop=should_stop, progress=True, **given)
    show_label_check(found, most)
    show_notes(found.notes)
    write_predictions(place, found.table)
    print_path(place)
