"""Environment variables that libraries read once, when they are loaded; set before PyTorch is imported."""

from __future__ import annotations

import os
import pickle
from typing import Any


def limit_waiting() -> None:
    """Lets OpenMP threads wait actively for at most some 0.1 ms before they sleep, unless the user has chosen how.

    Threads that wait actively all the time take the time from each other on a busy machine. Threads that sleep at once
    wake up so slowly that a small training takes a fifth longer.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "20000")


def call_in_worker(function: bytes, gpu: str | None, *arguments: Any) -> Any:
    """Returns `pickle.loads(function)(*arguments)` in a new process, which sees one GPU if `gpu` names it."""
    limit_waiting()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    # what the function needs is imported here
    return pickle.loads(function)(*arguments)
