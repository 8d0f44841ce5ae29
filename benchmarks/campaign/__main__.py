"""A campaign against faults.

    python -m benchmarks.campaign mutations --count 2000 --seed 0

Each subcommand prints its counts as a Markdown table, and exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.util import find_spec

COMMANDS = ("mutations", "kills", "races", "soak")
"""A module each, with `add_command(commands)`: it adds its parser and sets `run`, which returns the exit code."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    for name in COMMANDS:
        if find_spec(f"benchmarks.campaign.{name}") is not None:
            import_module(f"benchmarks.campaign.{name}").add_command(commands)
    given = parser.parse_args(arguments)
    return given.run(given)


if __name__ == "__main__":
    sys.exit(main())
