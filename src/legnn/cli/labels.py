"""The commands `labels …`, on the given labels themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from legnn.cli.loading import loading
from legnn.cli.options import SetOption, argument, check_suffix, option, parse_device, parse_settings
from legnn.cli.processes import stop_on_signal

labels = typer.Typer(no_args_is_help=True, help="Which given labels look wrong, and which nodes to label next.")

_RUN = "Folder of a finished run, of an ensemble, or of runs with several seeds"
_DATA = "Another graph with the same features, such as the run's own with more labels or nodes"


@labels.command()
def check(
    source: Annotated[str, argument("Folder of a finished run or ensemble, a named data set, or a folder of tables")],
    out: Annotated[Path | None, option("File for all labels, .parquet or .csv [labels.csv]")] = None,
    folds: Annotated[int, option("Parts of the training nodes, judged by models without them [5]")] = 5,
    repeats: Annotated[int, option("Other divisions into folds, averaged [2]")] = 2,
    most: Annotated[int, option("Rows that are printed [20]")] = 20,
    preset: Annotated[str | None, option("What chooses the settings that are left open [recommended]")] = None,
    set_: SetOption = None,
) -> None:
    """Rank the given labels by how likely they are wrong, with the evidence.

    No model judges a label it was trained on. Of a run, its data and settings are used.
    """
    with loading():
        from legnn.cli.console import print_path
        from legnn.cli.display import show_notes
        from legnn.cli.label_display import show_label_check
        from legnn.io import write_predictions
        from legnn.labels.check import check_labels

    path = out or Path("labels.csv")
    check_suffix(path, "checked labels go", ".parquet", ".csv")
    with stop_on_signal() as should_stop:
        check = check_labels(
            source,
            folds=folds,
            repeats=repeats,
            should_stop=should_stop,
            progress=True,
            preset=preset,
            settings=parse_settings(set_),
        )
    show_label_check(check, most)
    show_notes(check.notes)
    write_predictions(path, check.table)
    print_path(path)


@labels.command(name="next")
def next_(
    run: Annotated[Path, argument(_RUN)],
    number: Annotated[int, option("How many nodes [50]", "-n", "--number")] = 50,
    data: Annotated[str | None, option(_DATA)] = None,
    out: Annotated[Path | None, option("File for the table, .parquet or .csv")] = None,
    set_: SetOption = None,
) -> None:
    """List the nodes without a label that are most worth labeling, best first.

    Those that the model is unsure of, that are like many nodes without a label, and whose labels would travel far.
    """
    with loading():
        from legnn.cli.console import print_path
        from legnn.cli.label_display import show_next_labels
        from legnn.io import write_predictions
        from legnn.labels.acquisition import next_labels
        from legnn.runs import open_predictor

    check_suffix(out, "nodes to label go", ".parquet", ".csv")
    table = next_labels(open_predictor(run), number, data=data, device=parse_device(set_))
    show_next_labels(table)
    if out is not None:
        write_predictions(out, table)
        print_path(out)


@labels.command()
def audit(
    run: Annotated[Path, argument(_RUN)],
    data: Annotated[str | None, option("The same data, where the run had them from memory, or another graph")] = None,
    flips: Annotated[int, option("Training nodes whose labels are flipped [200]")] = 200,
    retrain: Annotated[bool, option("Also train a few epochs again with test labels flipped", "--retrain")] = False,
    out: Annotated[Path | None, option("File for all findings, .json")] = None,
    set_: SetOption = None,
) -> None:
    """Look for leaks: nodes that saw their own label, and labels in splits, ids, features, degrees and edges.

    Prints what was checked. Exits with code 1 if a leak was found.
    """
    with loading():
        from legnn.cli.console import print_path
        from legnn.cli.label_display import show_audit
        from legnn.labels.audit import audit
        from legnn.typed_json import write_json

    check_suffix(out, "an audit goes", ".json")
    findings = audit(run, data, flips=flips, retrain=retrain, device=parse_device(set_))
    show_audit(findings)
    if out is not None:
        write_json(out, findings)
        print_path(out)
    if findings.leaks:
        raise typer.Exit(1)
