"""Several processes of `torchrun` that share the candidates of one search, through its folder alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from legnn.automl.clock import Clock
from legnn.files import write_text
from legnn.runs.folder import ENSEMBLE, RESULT

WAIT_SECONDS = 1.0
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")


class Share(NamedTuple):
    """This process among those of `torchrun`, which share the candidates."""

    rank: int = 0
    world_size: int = 1


@contextmanager
def without_torchrun() -> Iterator[Share]:
    """Within it a run trains alone, on the GPU of this process, also where `torchrun` started several."""
    kept = {name: os.environ.pop(name) for name in TORCHRUN if name in os.environ}
    if "RANK" not in kept:
        os.environ.update(kept)
        yield Share()
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = visible.split(",") if visible else [str(k) for k in range(64)]
    os.environ["CUDA_VISIBLE_DEVICES"] = devices[int(kept.get("LOCAL_RANK", "0")) % len(devices)]
    try:
        yield Share(int(kept["RANK"]), int(kept["WORLD_SIZE"]))
    finally:
        os.environ.update(kept)
        if visible is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = visible


def meet(folder: Path, share: Share, clock: Clock) -> None:
    """Waits for the other processes: the first one for all of them, the others for the ensemble."""
    if share.world_size == 1:
        return
    mine = folder / f"rank-{share.rank}.done"
    write_text(mine, "")
    if share.rank == 0:
        # of an earlier search: the others wait for the new one
        (folder / RESULT).unlink(missing_ok=True)
    others = [folder / f"rank-{rank}.done" for rank in range(share.world_size)]

    def is_ready() -> bool:
        if share.rank == 0:
            return all(path.is_file() for path in others)
        return (folder / ENSEMBLE).is_file() and (folder / RESULT).is_file()

    # a process that trained until the end is done soon after it; the others wait for the ensemble, too
    longest = 0.05 if share.rank == 0 else 0.5
    while not is_ready() and clock.left > -longest * clock.budget:
        time.sleep(WAIT_SECONDS)
    if share.rank == 0:
        for path in others:
            path.unlink(missing_ok=True)
