"""A progress bar on standard error, where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def progress_bar(title: str, total: float | None, *, visible: bool = True) -> Iterator[Callable[[float], None]]:
    """Yields a function that sets how much of `total` (None if it is not known) is done."""
    shown = visible and sys.stderr.isatty()
    # a bracket in the name of a file is not markup
    with Progress(console=Console(stderr=True, markup=False), transient=True, disable=not shown) as progress:
        task = progress.add_task(title.replace("[", r"\["), total=total)
        yield lambda done: progress.update(task, completed=done)
