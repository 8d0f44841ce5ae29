"""The processes that train together: what they exchange, and what each computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

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
