"""Prints what a campaign of faults came to.

python -m benchmarks.campaign kills --count 100
python -m benchmarks.campaign races --count 20
python -m benchmarks.campaign soak --minutes 120
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
    """Runs one part of the campaign, and returns 1 if anything was not as promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name, count in (("kills", 100), ("races", 20)):
        part = parts.add_parser(name)
        part.add_argument("--count", type=int, default=count)
        part.add_argument("--kinds", help="kinds by name, joined by commas; all if not given")
    parts.add_parser("soak").add_argument("--minutes", type=float, default=120.0)
    for part in parts.choices.values():
        part.add_argument("--seed", type=int, default=0)
        part.add_argument("--folder", type=Path, help="where it works; a temporary folder if not given")
        part.add_argument("--json", type=Path, help="file for all that was found")
    given = parser.parse_args(arguments)
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="campaign-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found = _run(given, folder)
    print(found.markdown())
    if given.json is not None:
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n")
    return 0 if found.is_good else 1


def _run(given: argparse.Namespace, folder: Path):
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
