"""Adam as a run uses it on every device."""

from __future__ import annotations

from functools import lru_cache
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

from legnn.ops.runtime.streams import run_beside

AT_ONCE = 2**19
"""Parameters of one update beside a backward pass; those of a small model are updated after it, all at once."""


@lru_cache(None)
def optimizer_stream(stream: torch.cuda.Stream) -> torch.cuda.Stream:
    """The stream of updates beside a backward pass that began on `stream`."""
    return torch.cuda.Stream(stream.device)


class EagerAdam(Adam):
    """PyTorch's Adam without what keeps its methods out of compiled code, and imports the compiler for it.

    Importing it takes longer than many steps on a small graph.
    """

    add_param_group = unwrap(Adam.add_param_group)
    zero_grad = unwrap(Adam.zero_grad)

    def step(self) -> None:  # type: ignore[override]
        """One step of all parameters that have a gradient."""
        self._step_of(self.param_groups)

    def backward_and_step(self, loss: Tensor) -> None:
        """`loss.backward()` and a step, on a GPU at the same time: parameters that have their gradient are updated.

        Nothing that is left of a backward pass reads a parameter whose gradient is there.
        """
        if not reads_lr_from_device(self):
            loss.backward()
            self.step()
            return
        current = torch.cuda.current_stream(loss.device)
        beside = optimizer_stream(current)
        ready: dict[Tensor, torch.cuda.Event] = {}

        def update(stream: torch.cuda.Stream) -> None:
            for event in ready.values():
                stream.wait_event(event)
            parts = [[one for one in group["params"] if one in ready] for group in self.param_groups]
            with torch.cuda.stream(stream):
                self._step_of([{**group, "params": part} for group, part in zip(self.param_groups, parts, strict=True)])
            ready.clear()

        def note(parameter: Tensor) -> None:
            ready[parameter] = torch.cuda.current_stream(loss.device).record_event()
            if sum(one.numel() for one in ready) >= AT_ONCE:
                update(beside)

        hooks = [
            parameter.register_post_accumulate_grad_hook(note)
            for group in self.param_groups
            for parameter in group["params"]
        ]
        try:
            loss.backward()
        finally:
            for hook in hooks:
                hook.remove()
        update(current)
        current.wait_stream(beside)

    @torch.no_grad()
    def _step_of(self, parts: list[dict[str, Any]]) -> None:
        """A step of the parameters in `parts` of the groups, which run at the same time on a GPU."""
        groups, parts = self.param_groups, [part for part in parts if part["params"]]

        def step(part: list[dict[str, Any]]) -> None:
            self.param_groups = part
            unwrap(Adam.step)(self)

        try:
            if len(parts) < 2 or not isinstance(parts[0]["lr"], Tensor):
                step(parts)
            else:
                # of few parameters, a launch takes as long as of many
                run_beside(parts[0]["lr"], lambda: step(parts[1:]), lambda: step(parts[:1]))
        finally:
            self.param_groups = groups

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


def backward_and_step(loss: Tensor, optimizer: Optimizer) -> None:
    """`loss.backward()` and a step of the optimizer, at the same time where it can."""
    if isinstance(optimizer, EagerAdam):
        optimizer.backward_and_step(loss)
    else:
        loss.backward()
        optimizer.step()


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
