"""The commands about graphs: `prepare` and `datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from legnn.cli.loading import loading
from legnn.cli.options import argument, option, with_settings


@with_settings("data")
def prepare(
    source: Annotated[str, argument("A named data set or a folder of tables")],
    out: Annotated[Path | None, option("Folder for the prepared graph, new or empty")] = None,
    check: Annotated[bool, option("Read all of a prepared folder, and say whether anything in it was changed")] = False,
    **given: Any,
) -> None:
    """Read, check and prepare a graph once, and keep it as arrays that later runs only map into memory.

    Give the folder to the other commands in the place of a folder of tables. They notice whatever was changed in it; of
    a folder of 256 MB or more, which takes long to read, only prepare FOLDER --check does.
    """
    with loading():
        from legnn.cli.display import print_line, print_path, show_notes, show_statistics
        from legnn.data import statistics
        from legnn.datasets import check_prepared, prepare_folder
        from legnn.errors import InputError

    if check:
        if given or out is not None:
            raise InputError("--check reads a prepared folder as it is; give no other option beside it")
        show_statistics([statistics(check_prepared(source))])
        print_line(f"{source} is as it was prepared")
        return
    if out is None:
        raise InputError("give the folder for the prepared graph as `out`")
    data = prepare_folder(source, out, **given)
    show_statistics([statistics(data)])
    show_notes(data.notes)
    print_path(out)


@with_settings("split", "cross_label_edges", "cross_label_seed", panels=False)
def datasets(
    name: Annotated[str | None, argument("A named data set or a folder of tables")] = None,
    **given: Any,
) -> None:
    """Show the named data sets and the folders of tables beside them with their statistics, or those of one.

    Without a name, nothing is downloaded: sets that are not on this machine are listed without figures.
    """
    from legnn.cli.display import print_line, show_notes, show_statistics
    from legnn.cli.graph_list import list_graphs
    from legnn.files import data_folder

    if name is not None:
        with loading():
            from legnn.data import statistics
            from legnn.datasets import CATALOG, load

        data = load(name, **given)
        show_statistics([statistics(data)])
        if name in CATALOG:
            print_line(f"{CATALOG[name].about}; splits: {CATALOG[name].splits}")
        show_notes(data.notes)
        return

    caption = "a set that is not here is downloaded when it is first used"
    show_statistics(list_graphs(), f"under {data_folder()}", caption)
