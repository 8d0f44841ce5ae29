"""The processes that train together.

PyTorch's `torchrun` starts them and gives each its rank. Without it there is one process, of rank zero.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store, default_pg_timeout
from torch.distributed.rendezvous import rendezvous
from torch.nn.utils import parameters_to_vector

from legnn.errors import InputError, Interrupted, first_line

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    world_size: int = 1

    @property
    def is_rank_zero(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def shard(self, items: Sequence[T]) -> Sequence[T]:
        """This process's share of a list that all have."""
        return items[self.rank :: self.world_size]

    def all_reduce(self, values: Tensor) -> Tensor:
        """`values`, overwritten by their sum over all processes."""
        if self.world_size > 1:
            dist.all_reduce(values)
        return values

    def divisor_of_mean(self, number: int) -> float:
        """What a sum of this process is divided by to be its part of a mean over `number`, see `share_of_mean`."""
        return number / self.world_size

    def share_of_mean(self, total: Tensor, number: Tensor | int) -> Tensor:
        """This process's part of a mean over all processes: their average is the sum of all `total` over `number`.

        `number` is the count over all processes. Gradients are averaged over processes, so those of the parts become
        those of the mean.
        """
        return total / number if self.world_size == 1 else total * (self.world_size / number)

    def any_rank(self, value: bool) -> bool:
        """Whether `value` is true in any process."""
        if self.world_size == 1:
            return value
        return bool(self.all_reduce(torch.tensor(float(value))) > 0)

    def barrier(self) -> None:
        """Wait until all processes are here."""
        if self.world_size > 1:
            dist.barrier()


SINGLE_PROCESS = Ranks()


def gradient_vector(module: nn.Module) -> Tensor:
    """The gradients of all parameters as one vector; one that is missing is zero."""
    return parameters_to_vector(
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in _trained(module)
    )


def average_gradients(module: nn.Module, gradients: Tensor, ranks: Ranks) -> None:
    """Gives parameters the average of `gradients` over processes, and all processes the statistics of rank zero.

    Args:
        gradients: `gradient_vector` of this process, which is overwritten.
    """
    gradients = ranks.all_reduce(gradients) / ranks.world_size
    parameters = list(_trained(module))
    parts = gradients.split([parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)
    # running statistics of a batch norm, of this process's share of the step
    statistics = [buffer for name, buffer in module.named_buffers() if "running" in name]
    if statistics and ranks.world_size > 1:
        first = parameters_to_vector(statistics)
        dist.broadcast(first, 0)
        for buffer, part in zip(statistics, first.split([buffer.numel() for buffer in statistics]), strict=True):
            buffer.copy_(part.view_as(buffer))


def _trained(module: nn.Module) -> Iterator[nn.Parameter]:
    return (parameter for parameter in module.parameters() if parameter.requires_grad)


def under_torchrun() -> bool:
    """Whether `torchrun` started this process."""
    return dist.is_torchelastic_launched()


def restart_count() -> int:
    """How often `torchrun` started this process again, after one had died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


STORE_TIME = timedelta(seconds=60)
"""How long a process tries to reach the store of `torchrun`, which is there before any process is started."""
SECONDS_ALONE = 30.0
"""How long processes whose `torchrun` was killed may take to end by themselves, after the current epoch."""
POLL_SECONDS = 0.5
_PARENT = os.getppid()


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
