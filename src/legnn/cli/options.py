"""Options of the commands, generated from the settings, and their names in messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from legnn.config import SECTIONS, SETTINGS
from legnn.config.fields import Setting

ARGUMENTS = (
    *(
        "budget",
        "config",
        "cross_fit",
        "data",
        "jobs",
        "out",
        "port",
        "preset",
        "probabilities",
        "resume",
        "seeds",
        "top",
    ),
    "trials",
)
"""Names in messages of the library that are options and no settings."""

Command = Callable[..., None]


def option(help: str, *names: str, panel: str | None = None, metavar: str | None = None) -> Any:
    """Returns an option whose help says its default in brackets."""
    return typer.Option(*names, help=_plain(help), rich_help_panel=panel, metavar=metavar, show_default=False)


def argument(help: str) -> Any:
    """Returns an argument whose help says its default in brackets."""
    return typer.Argument(help=_plain(help), show_default=False)


def _plain(text: str) -> str:
    """Returns help whose brackets are shown, not read as markup."""
    return text.replace("[", r"\[")


def with_settings(
    *names: str, without: Sequence[str] = ("source",), panels: bool = True
) -> Callable[[Command], Command]:
    """Adds an option for each of the settings to a command, which gets those that were given as keywords.

    A name may be that of a section. Values are texts, checked by the settings: the words of a refusal are the same here
    and in Python. Settings `without` get no option: the command has others for them, or, for the source of the data,
    an argument.
    """
    chosen = {one.name for one in SETTINGS.values() if {one.name, one.section} & set(names)} - set(without)
    settings = [one for one in SETTINGS.values() if one.name in chosen]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**values: Any) -> None:
            found = ((one, values.pop(one.name)) for one in settings)
            given = {one.name: one.parse(value) if isinstance(value, str) else value for one, value in found}
            command(**values, **{name: value for name, value in given.items() if value is not None})

        first, *others, _ = signature(command, eval_str=True).parameters.values()
        every = [first, *(_parameter(one, panels) for one in settings), *others]
        every = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in every]
        # Typer reads both
        run.__signature__ = Signature(every)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in every}
        return run

    return decorate


def _parameter(one: Setting, panels: bool) -> Parameter:
    # the choices are part of the help: as a column of their own, they would leave a narrow terminal no room for it
    words = f" ({' | '.join(one.choices)})" if one.choices else ""
    about = f"{one.help}{words} [{one.shown_default}]"
    panel = SECTIONS[one.section].title if panels else None
    metavar = "TEXT" if one.number is None else one.number.__name__.upper()
    kind: Any = Annotated[str | None, option(about, flag(one.name), panel=panel, metavar=metavar)]
    if one.is_switch:
        kind = Annotated[bool | None, option(about, f"{flag(one.name)}/{flag(one.name, 'no-')}", panel=panel)]
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def flag(name: str, prefix: str = "") -> str:
    """Returns `"--label-edges"` for `"label_edges"`."""
    own = SETTINGS[name].flag if name in SETTINGS else None
    return f"--{prefix}{own or name}".replace("_", "-")


def with_flags(message: str) -> str:
    """Returns a message of the library with options for its names: `--batch 1024` in the place of "`batch=1024`"."""

    def typed(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in SETTINGS and name not in ARGUMENTS:
            return found[0]
        if value in (None, "True", "False"):
            return flag(name, "no-" if value == "False" else "")
        return f"{flag(name)} {value}"

    return re.sub(r"`(\w+)(?:=([^`]*))?`", typed, message)
