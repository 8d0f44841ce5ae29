"""A step of Adam for all parameters of a model at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.ops import select
from legnn.ops.adam import reference

SLOTS = 32
"""Parameters that one launch updates."""


class AdamTensors(NamedTuple):
    """What a step reads of one parameter, and updates in place."""

    parameter: Tensor
    gradient: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor
    step: Tensor
    """How many steps it has taken, a number in single precision."""
    weight_decay: float


def make_readers(device: torch.device) -> Tensor:
    """Returns the memory in which the kernel counts, zero between steps; steps on two streams need one each."""
    return torch.zeros(SLOTS, dtype=torch.int32, device=device)


def adam_step(
    tensors: Sequence[AdamTensors], lr: Tensor, betas: tuple[float, float], eps: float, readers: Tensor
) -> None:
    """Takes one step of Adam, with the penalty `weight_decay / 2 · ‖parameter‖²`.

    Args:
        tensors: of each parameter.
        lr: the learning rate, a number on the device of the parameters.
        betas: decay of both moments in a step.
        eps: added to the root of the second.
        readers: of `make_readers`.
    """
    has_kernel = select.kernels_for_device(lr.device) is select.TRITON
    ours: list[AdamTensors] = []
    others: list[AdamTensors] = []
    for one in tensors:
        (ours if has_kernel and _fits(one) else others).append(one)
    if ours:
        # Triton takes a moment to import
        from legnn.ops.adam.triton_kernels import launch

        launch(ours, lr, betas, eps, readers)
    if others:
        reference.adam_step(others, lr, betas, eps)


def _fits(one: AdamTensors) -> bool:
    """Whether the kernel updates it: single precision, in one piece of memory."""
    return one.parameter.dtype == torch.float32 and all(
        tensor.is_contiguous() for tensor in (one.parameter, one.gradient, one.exp_avg, one.exp_avg_sq)
    )
