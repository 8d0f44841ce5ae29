"""A campaign against faults.

    python -m benchmarks.campaign mutations --count 2000
    python -m benchmarks.campaign kills --count 100
    python -m benchmarks.campaign races --count 20
    python -m benchmarks.campaign soak --minutes 120

Each subcommand prints its counts as a Markdown table, and exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

# a second thread would only wait on graphs this small; before anything imports PyTorch
os.environ.setdefault("OMP_NUM_THREADS", "1")


def main(arguments: list[str] | None = None) -> int:
    from benchmarks.campaign import mutations

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="part", required=True)
    mutations.add_command(commands)
    for name, count in (("kills", 100), ("races", 20)):
        part = _add_command(commands, name)
        part.add_argument("--count", type=int, default=count)
        part.add_argument("--kinds", help="kinds by name, joined by commas; all if not given")
    _add_command(commands, "soak").add_argument("--minutes", type=float, default=120.0)
    given = parser.parse_args(arguments)
    return given.run(given)


def _add_command(commands: argparse._SubParsersAction, name: str) -> argparse.ArgumentParser:
    part: argparse.ArgumentParser = commands.add_parser(name)
    part.add_argument("--seed", type=int, default=0)
    part.add_argument("--folder", type=Path, help="where it works; a temporary folder if not given")
    part.add_argument("--json", type=Path, help="file for all that was found")
    part.set_defaults(run=_run)
    return part


def _run(given: argparse.Namespace) -> int:
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="campaign-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found = _carry_out(given, folder)
    print(found.markdown())
    if given.json is not None:
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n")
    return 0 if found.is_good else 1


def _carry_out(given: argparse.Namespace, folder: Path):
    if given.part == "soak":
        from benchmarks.campaign.soak import soak

        return soak(given.minutes, given.seed, folder)
    if given.part == "kills":
        from benchmarks.campaign.kills import SHARES, kill_many

        kinds = given.kinds.split(",") if given.kinds else tuple(SHARES)
        return kill_many(given.count, given.seed, folder, kinds, on_kill=_tell)
    from benchmarks.campaign.races import SHARES as RACES
    from benchmarks.campaign.races import race_many

    kinds = given.kinds.split(",") if given.kinds else tuple(RACES)
    return race_many(given.count, given.seed, folder, kinds, on_race=_tell)


def _tell(one: object) -> None:
    print(one, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
