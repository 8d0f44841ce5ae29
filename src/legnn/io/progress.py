"""A bar for what takes seconds: on standard error, where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def bar(words: str, total: float | None, *, wanted: bool = True) -> Iterator[Callable[[float], None]]:
    """A function that says how much of `total` is done; it draws nothing where nobody would see it.

    Args:
        words: what is being done.
        total: when it is finished; None where that is not known.
        wanted: whether there is so much to do that somebody would wait.
    """
    shown = wanted and sys.stderr.isatty()
    # a file's name may hold a bracket, which is no markup
    with Progress(console=Console(stderr=True, markup=False), transient=True, disable=not shown) as progress:
        task = progress.add_task(words.replace("[", r"\["), total=total)
        yield lambda done: progress.update(task, completed=done)
