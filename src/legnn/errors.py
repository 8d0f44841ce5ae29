"""Errors of the library, and helpers for their messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from reprlib import Repr


class LegnnError(Exception):
    """An error that is answered by one sentence: by the command line without a traceback, with exit code 2."""


class InputError(LegnnError, ValueError):
    """The input cannot be used.

    The message is one sentence that names the file, column, row or node and says what would have been right. It names
    settings and arguments as Python has them, in backquotes where the user should give them: "give `train.batch=1024`
    or a smaller `model.hidden`". The command line prints the message and exits with code 2.

    Args:
        message: the sentence.
        setting: dotted name of the setting that is wrong, which the command line shows as its option.
    """

    def __init__(self, message: str, *, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class OutOfMemory(LegnnError):  # noqa: N818 (PyTorch and Python have errors of that name)
    """The memory of the device or the host is too small for the settings."""


class FolderInUse(LegnnError):  # noqa: N818 (not an error of the folder: later it may be written to)
    """Another process or thread is writing to the folder."""


class Interrupted(LegnnError):  # noqa: N818 (not an error: the user asked)
    """Training was asked to stop; checkpoints are written. The command line exits with code 130.

    Args:
        epoch: last epoch, of a single run.
        folder: folder of that run.
        command: command that continues more than a single run.
    """

    def __init__(self, epoch: int | None, folder: Path | None, command: str | None = None) -> None:
        super().__init__("interrupted" + ("" if epoch is None else f" after epoch {epoch}"))
        self.epoch, self.folder, self.command = epoch, folder, command


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Returns `" (did you mean 'cora'?)"` if a choice is close to `word`, else an empty string."""
    by_lower = {choice.lower(): choice for choice in choices}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def plural(count: int, noun: str) -> str:
    """Returns `"1 node"`, `"2 nodes"`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def some_of(names: Sequence[object], most: int = 5) -> str:
    """Returns `"a, b and 7 more"`: at most so many names, and how many there are besides."""
    shown, more = ", ".join(str(name) for name in names[:most]), len(names) - most
    return shown if more <= 0 else f"{shown} and {more:,} more"


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, to be quoted in a message."""
    text = str(error).strip()
    if any(word in text for word in _UNSAFE):
        return "it holds Python objects, which are not loaded"
    line = text.splitlines()[0].rstrip(".") if text else type(error).__name__
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"


LONGEST = 300
"""Characters of another package's message that are quoted: it may quote a whole file itself."""

_UNSAFE = ("weights_only", "Weights only", "allow_pickle", "unsafe_load", "pickled")
"""Words of messages of other packages that say how to load a file that could execute code: they are not repeated."""

_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 3, 200, 200, 60


def short_repr(value: object) -> str:
    """Returns `repr(value)`, in the middle cut where it is long: it is quoted in a message of one sentence."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no whole number of more than some thousand digits
        return "a number of thousands of digits"


def in_gib(size: int) -> str:
    """`"1.5 GiB"`."""
    return f"{size / 2**30:.1f} GiB"
