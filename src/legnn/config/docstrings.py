"""Docstrings that list the settings, so that `help` shows what a function takes by name."""

from __future__ import annotations

from collections.abc import Callable, Collection
from textwrap import indent
from typing import TypeVar

from legnn.config.fields import Setting
from legnn.config.settings import SECTIONS

Documented = TypeVar("Documented", bound=Callable[..., object] | type)


def settings_help(*sections: str, without: Collection[str] = ()) -> str:
    """Returns a line for every setting of the sections, or of all: its name, help, values and default."""
    lines = []
    for name in sections or SECTIONS:
        section = SECTIONS[name]
        lines.append(f"{section.title}:")
        lines += [f"    {one.name}: {_line(one)}" for one in section.settings() if one.name not in without]
    return "\n".join(lines)


def lists_settings(*sections: str, without: Collection[str] = ("source",)) -> Callable[[Documented], Documented]:
    """Adds the settings of `settings_help` to the docstring of what it decorates."""

    def decorate(documented: Documented) -> Documented:
        about = indent(settings_help(*sections, without=without), "    ")
        title = 'Settings, with their defaults ("by graph": the preset chooses):'
        documented.__doc__ = f"{(documented.__doc__ or '').rstrip()}\n\n    {title}\n\n{about}\n    "
        return documented

    return decorate


def _line(one: Setting) -> str:
    choices = f" ({' | '.join(one.choices)})" if one.choices else ""
    return f"{one.help}{choices} [{one.shown_default}]"
