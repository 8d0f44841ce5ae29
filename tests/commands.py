"""The command `legnn` in this process, without the seconds that a new one takes to begin."""

import sys

from legnn import cli


def run_command(*arguments: object) -> int:
    """Runs `legnn` with these arguments and returns its exit code."""
    before, sys.argv = sys.argv, ["legnn", *map(str, arguments)]
    try:
        cli.main()
    except SystemExit as stop:
        return 0 if stop.code is None else int(stop.code)
    finally:
        sys.argv = before
    return 0
