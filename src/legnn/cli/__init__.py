"""The command `legnn`: its commands read options, leave the work to the library and the output to `display`."""

from typing import TYPE_CHECKING, Any

from legnn.cli import entry_point
from legnn.cli.entry_point import main

if TYPE_CHECKING:
    from legnn.cli.entry_point import app

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    # all commands with their options take some time to make, and a process needs one of them
    if name == "app":
        return entry_point.app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
