"""Kernels that are compiled in a second process while the command imports PyTorch, the first time that it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROGRAM = "import os; from legnn.ops.ahead import compile_kernels; compile_kernels(); os._exit(0)"
"""It ends without freeing what it imported, which takes a core for tenths of a second when training has begun."""
FOLDER = Path(__file__).parents[1] / "ops" / "attention"
COMPILED = "numba_kernels._score_gradient-*.nbi"
"""A file of numba's cache that is there after the first time."""


def compile_ahead() -> None:
    """Starts a process that compiles what training needs last, if nothing was compiled before and a core is idle.

    Nobody waits for it: what it has not compiled when it is needed, the command compiles by itself.
    """
    if _is_first_time() and _has_idle_core():
        import subprocess

        nothing = subprocess.DEVNULL
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=nothing, stdout=nothing, stderr=nothing)


def _is_first_time() -> bool:
    """Whether numba's cache can be written and has no kernel of ours."""
    place = os.environ.get("NUMBA_CACHE_DIR")
    if place:
        return not any(Path(place).glob(f"*/{COMPILED}"))
    # beside the source; what a package that cannot be written keeps elsewhere, is not looked for
    return os.access(FOLDER, os.W_OK) and not any((FOLDER / "__pycache__").glob(COMPILED))


def _has_idle_core() -> bool:
    """Whether there are several cores, and in the last minute not more processes than cores wanted one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores > 1 and hasattr(os, "getloadavg") and os.getloadavg()[0] <= cores
