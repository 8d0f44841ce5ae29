"""The commands `data …`: list graphs, and prepare one for later runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from legnn.cli.loading import loading
from legnn.cli.options import SetOption, argument, option, parse_settings

data = typer.Typer(no_args_is_help=True, help="List graphs, and prepare one for later runs.")


@data.command()
def prepare(
    source: Annotated[str, argument("A named data set or a folder of tables")],
    out: Annotated[Path | None, option("Folder for the prepared graph, new or empty")] = None,
    check: Annotated[bool, option("Read all of a prepared folder, and say whether anything in it was changed")] = False,
    set_: SetOption = None,
) -> None:
    """Read, check and prepare a graph once, and keep it as arrays that later runs only map into memory.

    Give the folder to the other commands in the place of a folder of tables. They notice whatever was changed in it; of
    a folder of 256 MB or more, which takes long to read, only data prepare FOLDER --check does.
    """
    with loading():
        from legnn.cli.console import print_line, print_path
        from legnn.cli.display import show_notes, show_statistics
        from legnn.data import statistics
        from legnn.datasets import check_prepared, prepare_folder
        from legnn.errors import InputError

    if check:
        if set_ or out is not None:
            raise InputError("--check reads a prepared folder as it is; give no other option with it")
        show_statistics([statistics(check_prepared(source))])
        print_line(f"{source} is as it was prepared")
        return
    if out is None:
        raise InputError("give the folder for the prepared graph with --out")
    graph = prepare_folder(source, out, **_options(set_))
    show_statistics([statistics(graph)])
    show_notes(graph.notes)
    print_path(out)


@data.command(name="list")
def list_(
    name: Annotated[str | None, argument("A named data set or a folder of tables [all names]")] = None,
    set_: SetOption = None,
) -> None:
    """List the named data sets and the folders of tables in the data folder, or show the statistics of one graph.

    A named set that is not on this machine is downloaded when it is first used.
    """
    with loading():
        from legnn.cli.console import print_line, show_table
        from legnn.cli.display import show_notes, show_statistics
        from legnn.data import statistics
        from legnn.datasets import CATALOG, load, table_folders
        from legnn.files import data_folder

    if name is None:
        rows = [(known, entry.description, entry.splits) for known, entry in CATALOG.items()]
        rows += [(folder, f"a folder in {data_folder()}", "") for folder in table_folders()]
        show_table(("data set", "", "splits"), rows, left=3)
        return
    graph = load(name, **_options(set_))
    show_statistics([statistics(graph)])
    if name in CATALOG:
        print_line(f"{CATALOG[name].description}; splits: {CATALOG[name].splits}")
    show_notes(graph.notes)


def _options(texts: list[str] | None) -> dict[str, Any]:
    """Returns the settings of the data by field."""
    return {name.removeprefix("data."): value for name, value in parse_settings(texts, "data.").items()}
