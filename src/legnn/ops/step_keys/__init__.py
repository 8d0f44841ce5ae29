"""Keys of what a training step draws on a GPU: those of a whole step by one kernel.

A generator of PyTorch takes a launch for every draw, and in a captured step two more for every replay, which together
are a tenth of the launches of a small step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from legnn.ops.runtime.generators import generator_for
from legnn.ops.runtime.hashing import WORD
from legnn.ops.select import TRITON, kernels_for_device

KEYS = 32
"""Keys that are drawn at once; a step that draws more takes another launch."""


class StepKeys:
    """Keys by a seed, the number of the step, which is counted on the device, and that of the draw.

    Args:
        seed: of the run.
        device: a GPU.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self.state = torch.tensor([seed & WORD, seed >> 32 & WORD, 0], device=device)
        """`[3]` the two words of the seed, and how often keys were drawn."""
        self._keys = torch.zeros(KEYS, 2, dtype=torch.long, device=device)
        self._used = KEYS

    @classmethod
    def of(cls, generator: torch.Generator) -> StepKeys | None:
        """Returns those of the generator's seed; None on a device that has no kernel for them."""
        device = generator.device
        return cls(generator.initial_seed(), device) if kernels_for_device(device) is TRITON else None

    @contextmanager
    def step(self) -> Iterator[None]:
        """Context of one step, which draws from these keys; it can be captured."""
        self._draw()
        # the first is that of the selection, whatever else is drawn
        self._used = 1
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @property
    def selection(self) -> Tensor:
        """`[2]` 32-bit words by which training nodes are selected in this step."""
        return self._keys[0]

    def next(self) -> Tensor:
        """`[2]` 32-bit words that nothing else in this step is drawn by."""
        if self._used == KEYS:
            # what was handed out before is still read: in other memory
            self._keys = torch.empty_like(self._keys)
            self._draw()
            self._used = 0
        self._used += 1
        return self._keys[self._used - 1]

    def _draw(self) -> None:
        # Triton takes a moment to import
        from legnn.ops.step_keys.triton_kernels import draw_keys

        draw_keys(self.state, self._keys)


_current: ContextVar[StepKeys | None] = ContextVar("step keys", default=None)


def draw_key(device: torch.device) -> Tensor:
    """`[2]` 32-bit words on `device`: a key of the step that this run takes, or drawn from its generator."""
    keys = _current.get()
    if keys is not None and keys.state.device == device:
        return keys.next()
    return torch.randint(2**32, (2,), device=device, generator=generator_for(device))
