"""The program: its commands and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from inspect import signature
from typing import Annotated, Any

import typer

import legnn
from legnn.cli.options import as_option, refuse_unknown_options
from legnn.cli.processes import is_rank_zero, wait_for_rank_zero
from legnn.environment import thread_waiting
from legnn.errors import InputError, Interrupted, LegnnError, first_line

COMMANDS = {
    "train": "training",
    "auto": "auto",
    "predict": "results",
    "evaluate": "results",
    "report": "report",
    "labels": "labels",
    "data": "data",
    "reproduce": "reproduce",
    "settings": "settings",
}
"""The commands in the order of the help, and the modules of this package that hold them."""


def _load(name: str) -> Any:
    return getattr(import_module(f"legnn.cli.{COMMANDS[name]}"), name)


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Returns the program with some of its commands: making the options of all takes longer than those of one."""
    made = typer.Typer(
        no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, rich_markup_mode="rich"
    )
    for name in names:
        command = _load(name)
        if isinstance(command, typer.Typer):
            made.add_typer(command, name=name)
        else:
            made.command()(command)
    made.callback()(_options)
    return made


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"legnn {legnn.__version__}")
        raise typer.Exit


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
    # before a command imports PyTorch, with which OpenMP is loaded
    os.environ.update(thread_waiting())
    asked = [name for name in sys.argv[1:2] if name in COMMANDS]
    declared = _declared(sys.argv[1:])
    try:
        if sys.argv[1:2] == ["resume"]:
            raise InputError("there is no command resume; continue any folder with: legnn train --resume FOLDER")
        if declared:
            refuse_unknown_options(sys.argv[2:], declared)
        make_app(asked or COMMANDS)()
    except Interrupted as stop:
        from legnn.cli.console import print_error  # not sooner: --help answers without it

        if is_rank_zero():
            print_error(f"interrupted{_where(stop)}", is_red=False)
        sys.exit(130)
    except (LegnnError, OSError) as error:
        from legnn.cli.console import print_error

        # a full disk or a folder that may not be written is no fault of the code, either
        wait_for_rank_zero()
        setting = getattr(error, "setting", None)
        print_error(str(error) + (f" ({as_option(setting, declared)})" if setting else ""))
        sys.exit(2)
    except MemoryError as error:
        from legnn.cli.console import print_error

        wait_for_rank_zero()
        print_error(f"there is not enough memory ({first_line(error)}); a smaller graph, or fewer features, may fit")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _declared(words: list[str]) -> Mapping[str, Any]:
    """Returns the parameters of the command that was typed; none without a command."""
    if not words or words[0] not in COMMANDS:
        return {}
    command = _load(words[0])
    if isinstance(command, typer.Typer):
        named = {
            made.name or getattr(made.callback, "__name__", ""): made.callback for made in command.registered_commands
        }
        command = named.get(words[1]) if len(words) > 1 else None
    return {} if command is None else signature(command).parameters


def _where(stop: Interrupted) -> str:
    """Returns how far training was, and how to continue."""
    epoch = "" if stop.epoch is None else f" after epoch {stop.epoch}"
    command = stop.command or (stop.folder and f"legnn train --resume {stop.folder}")
    return epoch + (f"; continue with: {command}" if command else "")
