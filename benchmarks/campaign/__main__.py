"""Prints what a campaign of faults came to: `python -m benchmarks.campaign soak --minutes 120`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

# a second thread would only wait on graphs this small; before anything imports PyTorch
os.environ.setdefault("OMP_NUM_THREADS", "1")


def main(arguments: list[str] | None = None) -> int:
    """Runs one part of the campaign, and returns 1 if anything was not as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    soaking = parts.add_parser("soak")
    soaking.add_argument("--minutes", type=float, default=120.0)
    for part in (soaking,):
        part.add_argument("--seed", type=int, default=0)
        part.add_argument("--folder", type=Path, help="where it works; a temporary folder if not given")
    given = parser.parse_args(arguments)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="campaign-"))

    from benchmarks.campaign.soak import soak

    found = soak(given.minutes, given.seed, folder.resolve())
    print(found.markdown())
    return 0 if found.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
