"""Environment variables that libraries read once, when they are loaded; set before PyTorch is imported."""

from __future__ import annotations

import os
import pickle
from typing import Any


def wait_passively() -> None:
    """Lets OpenMP threads sleep while they wait, unless the user has chosen how they do.

    Threads that spin while they wait take the time from each other on a busy machine.
    """
    if "GOMP_SPINCOUNT" not in os.environ:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def call_in_worker(function: bytes, gpu: str | None, *arguments: Any) -> Any:
    """Returns `pickle.loads(function)(*arguments)` in a new process, which sees one GPU if `gpu` names it."""
    wait_passively()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    # what the function needs is imported here
    return pickle.loads(function)(*arguments)
