"""Layers of a user's own."""

from collections.abc import Iterator
from contextlib import contextmanager

from legnn.nn.backbones import BACKBONES, REGISTERED, Backbone, register_backbone


@contextmanager
def registered(name: str, backbone: Backbone) -> Iterator[None]:
    """Registers a backbone under a name."""
    register_backbone(name, backbone)
    try:
        yield
    finally:
        del BACKBONES[name]
        REGISTERED.discard(name)
