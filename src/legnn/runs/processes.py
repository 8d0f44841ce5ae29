"""The processes of a run. PyTorch's `torchrun` starts them and gives each its rank; without it there is one process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store, default_pg_timeout
from torch.distributed.rendezvous import rendezvous

from legnn.errors import InputError, Interrupted, first_line
from legnn.training.ranks import SINGLE_PROCESS, Ranks

STORE_TIME = timedelta(seconds=60)
"""How long a process tries to reach the store of `torchrun`, which is there before any process is started."""
SECONDS_ALONE = 30.0
"""How long processes whose `torchrun` was killed may take to end by themselves, after the current epoch."""
POLL_SECONDS = 0.5
_PARENT = os.getppid()


def under_torchrun() -> bool:
    """Whether `torchrun` started this process."""
    return dist.is_torchelastic_launched()


def restart_count() -> int:
    """How often `torchrun` started this process again, after one had died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def agent_died() -> bool:
    """Whether `torchrun` started this process and was killed: nobody would restart, or end, what goes on alone."""
    # in this order: it is asked after every epoch, and the environment takes longer to read
    return os.getppid() != _PARENT and under_torchrun()


@contextmanager
def join_ranks(backend: str = "gloo") -> Iterator[Ranks]:
    """Join the processes that `torchrun` started, which exchange tensors over PyTorch's `backend`."""
    if not under_torchrun():
        yield SINGLE_PROCESS
        return
    if agent_died():
        raise Interrupted(None, None)
    with _end_without_agent():
        store, rank, size = _reach_store()
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
        try:
            yield Ranks(dist.get_rank(), dist.get_world_size())
        finally:
            dist.destroy_process_group()


def _reach_store() -> tuple[Store, int, int]:
    """The store of `torchrun`, the rank of this process, and their number."""
    try:
        store, rank, size = next(rendezvous("env://", timeout=STORE_TIME))
    except dist.DistNetworkError as error:
        raise InputError(f"torchrun, which started this process, cannot be reached: {first_line(error)}") from None
    # others may take their time to read the graph
    store.set_timeout(default_pg_timeout)
    # torchrun keeps one store over restarts: entries of a process that died must not be read by the next
    return PrefixStore(f"start-{restart_count()}", store), rank, size


@contextmanager
def _end_without_agent() -> Iterator[None]:
    """Within it the process ends some time after its `torchrun` was killed, whatever it waits for.

    The store is gone with `torchrun`, and processes may wait for each other there for half an hour. One that trains
    sees after the current epoch that it should stop, well before.
    """
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(POLL_SECONDS):
            if agent_died() and not is_over.wait(SECONDS_ALONE):
                print("legnn: torchrun was killed, and its processes end", file=sys.stderr, flush=True)
                # not an exception: the main thread may wait outside of Python
                os._exit(1)

    threading.Thread(target=watch, name="legnn-agent", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
