"""A process that makes mutations one after the other and reports each verdict before the next begins."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TextIO

MEMORY = 12 << 30
"""Bytes of address space: a folder that asks for more is refused, and does not take the machine down."""

PATTERN = (
    "tables", "runs", "settings", "prepared", "tables", "runs", "settings", "prepared",
    "tables", "runs", "settings", "tables", "runs", "settings", "prepared", "caches",
)  # fmt: skip
"""The kinds of mutations, in turn."""


def kind_of(number: int) -> str:
    """Returns the kind of a mutation by its number."""
    return PATTERN[number % len(PATTERN)]


def random_of(seed: int, number: int) -> Random:
    """Returns what a mutation is made of: its seed and number alone, so that it can be made again by itself."""
    return Random(f"{seed} {number}")


def work(specimens: Path, place: Path, seed: int, numbers: list[int], report: TextIO) -> None:
    """Makes and judges the mutations `numbers` of a seed; a line of JSON before and after each."""
    from benchmarks.campaign.cases import judge
    from benchmarks.campaign.folder_cases import cache_case, prepared_case, run_case
    from benchmarks.campaign.setting_cases import setting_case
    from benchmarks.campaign.table_cases import table_case

    makers: dict[str, Callable] = {
        "tables": table_case,
        "runs": run_case,
        "prepared": prepared_case,
        "caches": cache_case,
        "settings": setting_case,
    }
    for number in numbers:
        here = place / str(number)
        here.mkdir()
        os.chdir(here)
        kind = kind_of(number)
        start = time.process_time()
        case = makers[kind](random_of(seed, number), specimens, here)
        begun = {"number": number, "kind": kind, "about": case.about}
        print(json.dumps(begun), file=report, flush=True)
        found = judge(case)
        os.chdir(place)
        shutil.rmtree(here, ignore_errors=True)
        done = {**begun, "verdict": found.verdict, "message": found.message}
        print(json.dumps({**done, "seconds": round(time.process_time() - start, 2)}), file=report, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("specimens", type=Path)
    parser.add_argument("--place", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--numbers", default="")
    given = parser.parse_args()
    # what the library prints is not part of the report
    report = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    faulthandler.enable()  # a signal says where it came from
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    os.environ["XDG_CACHE_HOME"] = str(given.specimens / "cache")
    if not given.numbers:
        from benchmarks.campaign.folder_cases import load_typed
        from benchmarks.campaign.specimens import build_specimens

        build_specimens(given.specimens)
        load_typed(given.specimens, given.specimens / "caches" / "embeddings")
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    work(given.specimens, given.place, given.seed, [*map(int, given.numbers.split(","))], report)


if __name__ == "__main__":
    sys.exit(main())
