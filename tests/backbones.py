"""Names of backbones for tests of each, from the registry, and layers of a user's own."""

from collections.abc import Iterator
from contextlib import contextmanager

from legnn.config import ModelSettings
from legnn.config.model import BACKBONES as NAMES
from legnn.config.model import traits
from legnn.nn import LayerSpec, Lift
from legnn.nn.backbones import BACKBONES, REGISTERED, Backbone, register_backbone

LAYERS = {name: make(LayerSpec(ModelSettings(backbone=name))) for name, make in BACKBONES.items()}
UNTYPED = [name for name, layer in LAYERS.items() if not hasattr(layer, "relations")]
"""All that tell no relations apart."""
PADDED = [name for name, layer in LAYERS.items() if layer.supports_padding]
"""Layers of this library that tell no relations apart."""
PLAIN = [name for name in PADDED if traits(name).residual != "none"]
"""Those of the paper: they read no initial state."""
WITH_LIFTED = [*PLAIN, next(name for name, layer in LAYERS.items() if isinstance(layer, Lift))]
"""Those of the paper, and a convolution of PyG."""


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
