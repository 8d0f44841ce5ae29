"""The commands `labels …`, on the given labels themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from legnn.cli.options import argument, option, with_settings
from legnn.errors import InputError

labels = typer.Typer(no_args_is_help=True, help="Which nodes to label next.")

_RUN = "Folder of a finished run, of an ensemble, or of runs with several seeds"
_DATA = "Another graph with the same features, such as the run's own with more labels or nodes"


@labels.command(name="next")
@with_settings("device", panels=False)
def next_(
    run: Annotated[Path, argument(_RUN)],
    number: Annotated[int, option("How many nodes [50]", "-n", "--number")] = 50,
    batch: Annotated[
        bool, option("Choose each given those before it, or each by itself [batch]", "--batch/--no-batch")
    ] = True,
    data: Annotated[str | None, option(_DATA)] = None,
    out: Annotated[Path | None, option("File for the table, .parquet or .csv")] = None,
    **given: Any,
) -> None:
    """List the nodes without a label that are most worth labeling, best first.

    Those that the model is unsure of, that are like many nodes without a label, and whose labels would travel far.
    """
    from legnn.cli.display import print_path, show_next_labels
    from legnn.io import write_predictions
    from legnn.labels.acquisition import next_labels
    from legnn.runs import open_run

    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise InputError(f"nodes to label go to a .parquet or a .csv file, not to {out}")
    table = next_labels(open_run(run), number, batch=batch, data=data, **given)
    show_next_labels(table)
    if out is not None:
        write_predictions(out, table)
        print_path(out)
