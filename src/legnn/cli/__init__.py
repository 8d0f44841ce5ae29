"""The command `legnn`: its commands read options, leave the work to the library and the output to `display`."""

from legnn.cli.entry_point import main, make_app

__all__ = ["main", "make_app"]
