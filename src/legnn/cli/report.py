"""The command `report`: a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from legnn.cli.loading import loading
from legnn.cli.options import SetOption, argument, option, parse_device
from legnn.errors import InputError


def report(
    runs: Annotated[
        list[Path], argument("Folders of runs, of runs with several seeds, or of `auto`, shown side by side")
    ],
    out: Annotated[Path, option("The page, .html [report.html]")] = Path("report.html"),
    nodes: Annotated[
        str | None, option("Ids of nodes to explain, with commas [errors, unsure nodes, a sure node of each class]")
    ] = None,
    labels: Annotated[Path | None, option("Table that `labels check` wrote, shown as a section")] = None,
    serve: Annotated[bool, option("Show one run in the browser instead, in progress or finished", "--serve")] = False,
    port: Annotated[int, option("Port of --serve on this machine, 0 for any that is free [8800]")] = 8800,
    set_: SetOption = None,
) -> None:
    """Write a page of finished runs: scores, curves, classes, a map of the nodes, what predictions rest on.

    It is one file that opens offline. With --serve, a run in progress is watched until Ctrl-C.
    """
    with loading():
        from legnn.cli.console import print_line, print_path
        from legnn.report import write_report

    device = parse_device(set_)
    if serve and labels is not None:
        raise InputError("labels are a section of a page that is written; leave --serve out, or --labels")
    if serve:
        _serve(runs, port, device)
        return
    ids = None if nodes is None else [word.strip() for word in nodes.split(",") if word.strip()]
    print_path(write_report(runs, out, nodes=ids, labels=labels, say=print_line, device=device))


def _serve(runs: list[Path], port: int, device: str) -> None:
    with loading():
        from legnn.cli.console import print_line
        from legnn.report.serve import HOST, Watch, make_server

    if len(runs) > 1:
        raise InputError("one run is served at a time; name one, or leave --serve out")
    with make_server(Watch(runs[0], device=device), port) as server:
        print_line(f"http://{HOST}:{server.server_port}/ shows {runs[0]}; Ctrl-C ends it")
        server.serve_forever()
