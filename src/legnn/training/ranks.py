"""The processes that train together.

PyTorch's `torchrun` starts them and gives each its rank; `DistributedDataParallel` averages gradients. Without it there
is one process, of rank zero.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store, default_pg_timeout
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from legnn.errors import InputError, Interrupted, first_line
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

    def data_parallel(self, model: Model) -> Callable[..., Tensor]:
        """`model`, whose gradients are averaged over all processes."""
        if self.world_size == 1:
            return model
        # every parameter has a gradient in every step, if of zeros: labels that no node shows are computed all the same
        return DistributedDataParallel(model)


SINGLE_PROCESS = Ranks()


class GradientAverage:
    """The gradients of a model in one tensor, averaged over all processes in one exchange, and its running statistics.

    `collect` can be captured in a CUDA graph, and `exchange` follows it; `DistributedDataParallel` exchanges within
    the backward pass.
    """

    def __init__(self, model: Model, ranks: Ranks) -> None:
        self.ranks = ranks
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        norms = (module for module in model.modules() if isinstance(module, torch.nn.BatchNorm1d))
        self._statistics = [one for norm in norms for one in (norm.running_mean, norm.running_var) if one is not None]
        sizes = [parameter.numel() for parameter in self._parameters]
        self._all = torch.zeros(sum(sizes), device=self._parameters[0].device)
        self._parts = [
            part.view_as(parameter) for part, parameter in zip(self._all.split(sizes), self._parameters, strict=True)
        ]

    def collect(self) -> None:
        """Copies the gradients of this process; one that a parameter has not is zero."""
        for part, parameter in zip(self._parts, self._parameters, strict=True):
            if parameter.grad is None:
                part.zero_()
            else:
                part.copy_(parameter.grad)

    def exchange(self) -> None:
        """Gives every parameter the average of its gradients, and all processes the running statistics of rank zero."""
        self.ranks.all_reduce(self._all).div_(self.ranks.world_size)
        for parameter, part in zip(self._parameters, self._parts, strict=True):
            parameter.grad = part
        if self._statistics:
            first = torch.cat(self._statistics)
            dist.broadcast(first, 0)
            torch._foreach_copy_(self._statistics, first.split([one.numel() for one in self._statistics]))


def under_torchrun() -> bool:
    """Whether `torchrun` started this process."""
    return dist.is_torchelastic_launched()


def restart_count() -> int:
    """How often `torchrun` started this process again, after one had died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


STORE_TIME = timedelta(seconds=60)
"""How long a process tries to reach the store of `torchrun`, which is there before any process is started."""
SECONDS_ALONE = 30.0
"""How long processes whose `torchrun` was killed may take to end by themselves, after the epoch in flight."""
POLL_SECONDS = 0.5
_PARENT = os.getppid()


def agent_died() -> bool:
    """Whether `torchrun` started this process and was killed: nobody would restart, or end, what goes on alone."""
    # in this order: it is asked after every epoch, and the environment takes longer to read
    return os.getppid() != _PARENT and under_torchrun()


@contextmanager
def join_ranks(device: torch.device) -> Iterator[Ranks]:
    """Join the processes that `torchrun` started, over NCCL on GPUs and gloo on CPUs."""
    if not under_torchrun():
        yield SINGLE_PROCESS
        return
    if agent_died():
        raise Interrupted(None, None)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    with _end_without_agent():
        store, rank, size = _reach_store()
        # on GPUs, tensors in the host's memory are exchanged over gloo
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
        try:
            yield Ranks(dist.get_rank(), dist.get_world_size())
        finally:
            dist.destroy_process_group()


def _reach_store() -> tuple[Store, int, int]:
    """The store of `torchrun`, the rank of this process, and their number."""
    try:
        found, rank, size = next(rendezvous("env://", timeout=STORE_TIME))
    except dist.DistNetworkError as error:
        raise InputError(f"torchrun, which started this process, cannot be reached: {first_line(error)}") from None
    # others may take their time to read the graph
    found.set_timeout(default_pg_timeout)
    # torchrun keeps one store over restarts: entries of a process that died must not be read by the next
    return PrefixStore(f"start-{restart_count()}", found), rank, size


@contextmanager
def _end_without_agent() -> Iterator[None]:
    """Within it the process ends some time after its `torchrun` was killed, whatever it waits for.

    The store is gone with `torchrun`, and processes may wait for each other there for half an hour. One that trains
    sees after the epoch in flight that it should stop, well before.
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
