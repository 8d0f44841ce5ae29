"""Terminals."""

import io


class Terminal(io.StringIO):
    """A stream that says that it is a terminal: `contextlib.redirect_stderr(Terminal())`."""

    def isatty(self) -> bool:
        return True
