"""The terminal: text from a user's data reaches it without control characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

_HARMLESS = {"\n", "\u200c", "\u200d"}
"""A line end, and the joiners of scripts that need them."""


def printable(text: str) -> str:
    """Returns the text with control characters, and characters that reorder a line, written as escapes."""
    return "".join(
        character
        if unicodedata.category(character) not in ("Cc", "Cf", "Cs") or character in _HARMLESS
        else character.encode("unicode_escape").decode()
        for character in text
    )


class SafeConsole(Console):
    """Escapes every text before it is written; escape sequences of Rich itself are added later."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders as Rich does, with printable texts."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


# names in the user's data may contain brackets, which are not markup
out = SafeConsole(markup=False, emoji=False)
err = SafeConsole(stderr=True, markup=False, emoji=False)


def show_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    left: int = 1,
    title: str | None = None,
    caption: str | None = None,
) -> None:
    """Prints a table, the first `left` columns of which are texts, and the others numbers.

    With several texts, the first is a name that is not broken into lines, so that it can be searched and copied.
    """
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, header in enumerate(headers):
        is_name = number == 0 and left > 1
        table.add_column(header, justify="left" if number < left else "right", no_wrap=is_name)
    for row in rows:
        # here, too: the width of a column is that of the escaped text
        table.add_row(*(printable(str(cell)) for cell in row))
    out.print(table)


def print_line(text: str) -> None:
    """Prints a line as it is."""
    out.print(text, highlight=False)


def print_text(text: str) -> None:
    """Prints lines in one piece, however long, so that paths and Markdown can be copied."""
    out.print(text, highlight=False, soft_wrap=True)


def print_path(path: Path) -> None:
    """Prints where something was written."""
    print_text(str(path))


def print_error(message: str, *, is_red: bool = True) -> None:
    """Prints one line on standard error."""
    err.print(f"legnn: {message}", style="red" if is_red else None, soft_wrap=True, highlight=False)
