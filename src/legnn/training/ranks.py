"""The processes that train together.

PyTorch's `torchrun` starts them and gives each its rank; `DistributedDataParallel` averages gradients. Without it there
is one process, of rank zero.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from legnn.nn import Model

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

    def data_parallel(self, model: Model) -> Callable[..., Tensor]:
        """`model`, whose gradients are averaged over all processes."""
        if self.world_size == 1:
            return model
        # every parameter has a gradient in every step, if of zeros: labels that no node shows are computed all the same
        return DistributedDataParallel(model)


SINGLE_PROCESS = Ranks()


def under_torchrun() -> bool:
    """Whether `torchrun` started this process."""
    return dist.is_torchelastic_launched()


def restart_count() -> int:
    """How often `torchrun` started this process again, after one had died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


_PARENT = os.getppid()


def agent_died() -> bool:
    """Whether `torchrun` started this process and was killed: nobody would restart, or end, what goes on alone."""
    return under_torchrun() and os.getppid() != _PARENT


@contextmanager
def join_ranks(device: torch.device) -> Iterator[Ranks]:
    """Join the processes that `torchrun` started, over NCCL on GPUs and gloo on CPUs."""
    if not under_torchrun():
        yield SINGLE_PROCESS
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # torchrun keeps one store over restarts: entries of a process that died must not be read by the next
    found, rank, size = next(rendezvous("env://"))
    store = PrefixStore(f"start-{restart_count()}", found)
    # on GPUs, tensors in the host's memory are exchanged over gloo
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
