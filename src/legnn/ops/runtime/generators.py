"""The generators of a run: PyTorch's own, or, where several runs share a process, copies for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Generator, Tensor

_own: ContextVar[Mapping[str, Generator] | None] = ContextVar("generators", default=None)
"""Of the run in this thread, by kind of device; None where it draws from PyTorch's."""


def copy_generators(device: torch.device) -> dict[str, Generator]:
    """Returns generators that draw what PyTorch's would draw next, on the host and on `device`."""
    generators = {kind.type: Generator(kind) for kind in {torch.device("cpu"), device}}
    for kind, state in random_states(device).items():
        generators[kind].set_state(state)
    return generators


@contextmanager
def drawing_from(generators: Mapping[str, Generator]) -> Iterator[None]:
    """Within it this thread draws from `generators`, and leaves PyTorch's alone."""
    token = _own.set(generators)
    try:
        yield
    finally:
        _own.reset(token)


def generator_for(device: torch.device) -> Generator | None:
    """Returns the generator from which the run in this thread draws on `device`; None for PyTorch's."""
    own = _own.get()
    return None if own is None else own[device.type]


def seed_generators(seed: int) -> None:
    """Seeds the generators of the run in this thread, on the host and on GPUs.

    `torch.manual_seed` also seeds kinds of devices that are not there, for which it notes the lines of all callers.
    """
    own = _own.get()
    if own is None:
        torch.default_generator.manual_seed(seed)
        torch.cuda.manual_seed_all(seed)
        return
    for generator in own.values():
        generator.manual_seed(seed)


def random_states(device: torch.device) -> dict[str, Tensor]:
    """Returns the states of the run's generators on the host and on `device`, by kind of device."""
    own = _own.get()
    if own is not None:
        return {kind: generator.get_state() for kind, generator in own.items()}
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def set_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Restores what `random_states` returned."""
    own = _own.get()
    for kind in {"cpu", device.type} & states.keys():
        if own is not None:
            own[kind].set_state(states[kind])
        elif kind == "cuda":
            torch.cuda.set_rng_state(states[kind], device)
        else:
            torch.set_rng_state(states[kind])
