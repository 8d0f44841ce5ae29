"""Layers of a user's own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from legnn.nn import lifted
from legnn.nn.backbones import BACKBONES, REGISTERED, register_backbone


@contextmanager
def registered(name: str, make: Callable) -> Iterator[None]:
    """Registers a convolution of PyG, made from settings, input and output widths, under a name."""
    register_backbone(name, lifted(make))
    try:
        yield
    finally:
        del BACKBONES[name]
        REGISTERED.discard(name)
