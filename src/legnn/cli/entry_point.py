"""The program: its commands and exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import legnn
from legnn.cli.auto import auto
from legnn.cli.graphs import datasets, prepare
from legnn.cli.labels import labels
from legnn.cli.options import with_flags
from legnn.cli.processes import is_rank_zero, wait_for_rank_zero
from legnn.cli.report import report
from legnn.cli.reproduce import reproduce
from legnn.cli.results import analyze, audit, evaluate, plot, predict
from legnn.cli.training import train
from legnn.cli.tune import tune
from legnn.errors import InputError, Interrupted, first_line

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, rich_markup_mode="rich")
for command in (train, auto, tune, predict, evaluate, report, audit, prepare, datasets, plot, analyze, reproduce):
    app.command()(command)
app.add_typer(labels, name="labels")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"legnn {legnn.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Classify the nodes of a partly labeled graph by putting the labels into the graph."""


def main() -> None:
    """Runs the command.

    Exits with code 1 if an audit found a leak, with 2 and one sentence after an input error, and with 130 after an
    interruption.
    """
    try:
        app()
    except (InputError, OSError) as error:
        from legnn.cli.display import print_error  # not sooner: --help answers without it

        # a full disk or a folder that may not be written is no fault of the code, either
        wait_for_rank_zero()
        print_error(with_flags(str(error)))
        sys.exit(2)
    except MemoryError as error:
        from legnn.cli.display import print_error

        wait_for_rank_zero()
        print_error(f"there is not enough memory ({first_line(error)}); a smaller graph, or fewer features, may fit")
        sys.exit(2)
    except Interrupted as stop:
        from legnn.cli.display import print_error

        if is_rank_zero():
            print_error(f"interrupted{_where(stop)}", is_red=False)
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)


def _where(stop: Interrupted) -> str:
    """Returns how far training was, and how to continue."""
    epoch = "" if stop.epoch is None else f" after epoch {stop.epoch}"
    command = stop.command or (stop.folder and f"legnn train --resume {stop.folder}")
    return epoch + (f"; continue with: {command}" if command else "")
