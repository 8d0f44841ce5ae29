"""The settings as a table for the guide."""

from __future__ import annotations

from legnn.config.fields import Setting
from legnn.config.settings import SECTIONS


def settings_table() -> str:
    """Returns a Markdown table of every setting: its name, values, default and help."""
    lines = ["| setting | values | default | |", "|---|---|---|---|"]
    for section in SECTIONS.values():
        lines.append(f"| **{section.title}** (`{section.name}`) | | | |")
        for one in section.settings():
            lines.append(f"| `{one.name}` | {_values(one)} | {one.shown_default} | {one.help} |")
    return "\n".join(lines) + "\n"


def _values(one: Setting) -> str:
    if one.is_switch:
        return "yes, no"
    number = "" if one.number is None else f"number {one.bounds}".rstrip()
    words = ", ".join(f"`{word}`" for word in one.choices)
    return ", ".join(filter(None, (number, words))) or "text"
