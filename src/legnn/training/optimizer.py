"""Adam as a run uses it on every device."""

from __future__ import annotations

import math
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

from legnn.ops.runtime.streams import run_beside

PIECES, AT_ONCE = 36, 4
"""Pieces of parameters that PyTorch updates in one launch, and launches at the same time."""
LEAST_PIECE, LARGE_PIECE, LARGEST_PIECE = 2**11, 2**15, 2**16
"""Numbers in a piece. PyTorch updates up to 65,536 parameters by one block of threads, one after the other: those of a
small model are cut so that many blocks update them."""


def piece_size(number: int, parameters: int = 0) -> int:
    """Returns how many numbers a piece has at most, of `number` in so many `parameters`."""
    # each parameter may end with a piece that is not full
    full = max(PIECES - parameters, PIECES // 2)
    size = max(2 ** math.ceil(math.log2(max(number, 1) / full)), LEAST_PIECE)
    if size <= LARGE_PIECE:
        return size
    return LARGE_PIECE if number <= AT_ONCE * PIECES * LARGE_PIECE else LARGEST_PIECE


class EagerAdam(Adam):
    """PyTorch's Adam without what keeps its methods out of compiled code, and imports the compiler for it.

    Importing it takes longer than many steps on a small graph.
    """

    add_param_group = unwrap(Adam.add_param_group)
    zero_grad = unwrap(Adam.zero_grad)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One step of all groups, on a GPU at the same time: of few parameters, each takes as long as of many."""
        groups = self.param_groups
        if not groups or not isinstance(groups[0]["lr"], Tensor):
            unwrap(Adam.step)(self)
        elif len(groups) == 1:
            self._step_of(groups)
        else:
            run_beside(groups[0]["lr"], lambda: self._step_of(groups[1:]), lambda: self._step_of(groups[:1]))

    def _step_of(self, groups: list[dict[str, Any]]) -> None:
        """One step of groups on a GPU, as PyTorch takes it, with parameters in pieces."""
        for group in groups:
            parameters = [one for one in group["params"] if one.grad is not None]
            if not parameters:
                continue
            states = [self.state[one] for one in parameters]
            torch._foreach_add_([state["step"] for state in states], 1)
            most = piece_size(sum(one.numel() for one in parameters), len(parameters))
            pieces: list[tuple[Tensor, ...]] = []
            for one, state in zip(parameters, states, strict=True):
                whole = one, one.grad, state["exp_avg"], state["exp_avg_sq"]
                # what is not in one piece of memory stays whole
                is_flat = all(each.is_contiguous() for each in whole)
                cut = zip(*(each.view(-1).split(most) for each in whole), strict=True) if is_flat else [whole]
                pieces += [(*each, state["step"]) for each in cut]
            for dtype in dict.fromkeys(piece[0].dtype for piece in pieces):
                alike = [piece for piece in pieces if piece[0].dtype == dtype]
                self._update(group, alike, at_once=most <= LARGE_PIECE)

    def _update(self, group: dict[str, Any], pieces: list[tuple[Tensor, ...]], *, at_once: bool) -> None:
        """Updates pieces, each with its gradient, both moments and the step, perhaps by several launches `at_once`."""
        if at_once and len(pieces) > PIECES:
            half = -(-len(pieces) // 2)
            run_beside(
                group["lr"],
                lambda: self._update(group, pieces[:half], at_once=True),
                lambda: self._update(group, pieces[half:], at_once=True),
            )
            return
        values, gradients, averages, squares, steps = map(list, zip(*pieces, strict=True))
        torch._fused_adam_(
            values, gradients, averages, squares, [], steps, lr=group["lr"], beta1=group["betas"][0],
            beta2=group["betas"][1], weight_decay=group["weight_decay"], eps=group["eps"], amsgrad=False,
            maximize=False,
        )  # fmt: skip

    def create_state(self) -> None:
        """Creates the moments that PyTorch creates in the first step, so that this one can be captured."""
        for group in self.param_groups:
            for parameter in group["params"]:
                zeros = [torch.zeros_like(parameter, memory_format=torch.preserve_format) for _ in range(2)]
                step = torch.zeros((), dtype=torch.float32, device=parameter.device)
                self.state[parameter] = {"step": step, "exp_avg": zeros[0], "exp_avg_sq": zeros[1]}


def make_adam(groups: list[dict[str, Any]], lr: float) -> Adam:
    """Adam over `Model.parameter_groups`, on the device where they are trained.

    Fused, a step is a few launches on a GPU, and on two CPU cores takes a third of the time of the plain form (Cora:
    0.15 ms for 0.48 ms).
    """
    parameters = [parameter for group in groups for parameter in group["params"]]
    if not parameters or parameters[0].device.type != "cuda":
        return EagerAdam(groups, lr=lr, fused=True)
    # a captured step reads the learning rate of its epoch from the device
    adam = EagerAdam(groups, lr=torch.tensor(lr, device=parameters[0].device), fused=True, capturable=True)
    adam.create_state()
    return adam


def set_lr(optimizer: Optimizer, lr: float) -> None:
    """Set the learning rate of the next step, in place where a captured step reads it."""
    written: Tensor | None = None
    for group in optimizer.param_groups:
        if not isinstance(group["lr"], Tensor):
            group["lr"] = lr
        elif group["lr"] is not written:
            # groups share one: each launch takes time
            written = group["lr"].fill_(lr)


def reads_lr_from_device(optimizer: Optimizer) -> bool:
    """Whether a captured step would follow `set_lr`; a number on the host would stay what it was at the capture."""
    return all(isinstance(group["lr"], Tensor) for group in optimizer.param_groups if group["params"])
