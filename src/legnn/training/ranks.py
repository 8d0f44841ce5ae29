"""The processes that train together: who this one is, and what they tell each other.

PyTorch's `torchrun` starts them and says in the environment who is who; `DistributedDataParallel` averages gradients.
Alone, a process is the first of one and has nobody to tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    def share(self, parts: Sequence[T]) -> Sequence[T]:
        """This process's part of a list that all have."""
        return parts[self.rank :: self.size]

    def sum_(self, values: Tensor) -> Tensor:
        """`values`, overwritten by their sum over all processes."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def agree(self, mine: bool) -> bool:
        """Whether it is so for any process: a decision that all must take alike."""
        if self.size == 1:
            return mine
        return bool(self.sum_(torch.tensor(float(mine))) > 0)

    def wait(self) -> None:
        """Go on when all have come here."""
        if self.size > 1:
            dist.barrier()

    def wrap(self, model: nn.Module) -> nn.Module:
        """`model`, whose gradients are averaged over all processes."""
        if self.size == 1:
            return model
        # every parameter has a gradient in every step, if of zeros: labels that nobody shows are computed all the same
        return DistributedDataParallel(model)


ALONE = Ranks()


def under_torchrun() -> bool:
    """Whether `torchrun` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def restarted() -> bool:
    """Whether `torchrun` started this process again, after one had died."""
    return _starts() > 0


def _starts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


@contextmanager
def join_ranks(device: torch.device) -> Iterator[Ranks]:
    """Join the processes that `torchrun` started, over NCCL on GPUs and gloo on CPUs; alone without it."""
    if not under_torchrun():
        yield ALONE
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # torchrun keeps one store for all its starts: what a process that died left there must not be found by the next
    found, rank, size = next(rendezvous("env://"))
    store = PrefixStore(f"start-{_starts()}", found)
    # on GPUs, what lies in the host's memory is exchanged over gloo
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
