"""What changes from one captured training step to the next: the keys of what it draws, and numbers from the host.

A step begins with one kernel that reads both. A generator of PyTorch takes a launch for every draw, and two more for
every replay of a captured step, and a number that the host writes to the device takes another: together they were a
tenth of the launches of a small step, and most of the host's time for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from legnn.ops.runtime.generators import generator_for
from legnn.ops.runtime.hashing import WORD

KEYS = 32
"""Keys that are drawn at once; a step that draws more takes another launch."""
ROWS = 1024
"""Steps whose numbers the host's memory holds."""


class StepInputs:
    """Keys by a seed, the number of the step and that of the draw; and the numbers of the step, written to the device.

    Steps are counted on the device. The host writes the numbers of each to its own memory, from where the step reads
    them, before it launches it.

    Args:
        seed: of the run.
        numbers: scalars on a GPU, in float32.
    """

    def __init__(self, seed: int, *numbers: Tensor) -> None:
        device, self._numbers = numbers[0].device, numbers
        self.state = torch.tensor([seed & WORD, seed >> 32 & WORD, 0], device=device)
        """`[3]` the two words of the seed, and how many steps were taken."""
        self._rows = torch.zeros(ROWS, len(numbers), pin_memory=device.type == "cuda")
        self._written = self._rows.numpy()
        self._launched = 0
        self._half: torch.cuda.Event | None = None
        """The step half of the rows ago."""
        self._keys = torch.zeros(KEYS, 2, dtype=torch.long, device=device)
        self._used = self._begun = 0

    def load(self, state: Tensor) -> None:
        """Goes on from an earlier `state`."""
        self.state.copy_(state)
        self._launched = int(state[2])

    def prepare(self, *numbers: float) -> None:
        """Writes the numbers of the step that is launched next."""
        if self._launched % (ROWS // 2) == 0:
            if self._half is not None:
                # whoever reads these rows was launched before it
                self._half.synchronize()
            self._half = _event(self.state.device)
        self._written[self._launched % ROWS] = numbers
        self._launched += 1

    @contextmanager
    def step(self) -> Iterator[None]:
        """Context of one step, which has its numbers and draws by its keys; it can be captured."""
        self._used = self._begun = 0
        self._draw(0)
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
            self._keys, self._used = torch.empty_like(self._keys), 0
            self._begun += KEYS
            self._draw(self._begun)
        self._used += 1
        return self._keys[self._used - 1]

    def _draw(self, first: int) -> None:
        # Triton takes a moment to import
        from legnn.ops.step_inputs.triton_kernels import begin_step, draw_keys

        if first == 0:
            begin_step(self.state, self._keys, self._rows, self._numbers)
        else:
            draw_keys(self.state, self._keys, first)


def _event(device: torch.device) -> torch.cuda.Event | None:
    return torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None


_current: ContextVar[StepInputs | None] = ContextVar("inputs of a step", default=None)


def draw_key(device: torch.device) -> Tensor:
    """`[2]` 32-bit words on `device`: a key of the step that this run takes, or drawn from its generator."""
    inputs = _current.get()
    if inputs is not None and inputs.state.device == device:
        return inputs.next()
    return torch.randint(2**32, (2,), device=device, generator=generator_for(device))
