"""Layers of a user's own."""

from collections.abc import Iterator
from contextlib import contextmanager

from legnn.config.model import BACKBONES as NAMES
from legnn.nn.backbones import BACKBONES, REGISTERED, Backbone, register_backbone


@contextmanager
def registered(name: str, backbone: Backbone) -> Iterator[None]:
    """Registers a backbone under a name."""
    register_backbone(name, backbone)
    try:
        yield
    finally:
        del BACKBONES[name]
        NAMES.remove(name)
        REGISTERED.discard(name)
