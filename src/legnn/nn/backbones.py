"""The backbones by name. A new one is a line here, or `register_backbone` from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import nn
from torch_geometric.nn import GATv2Conv, GINConv, TransformerConv

from legnn.config.model import BACKBONES as BACKBONE_NAMES
from legnn.config.model import register_choice
from legnn.nn.gat import GAT
from legnn.nn.gcn import GCN
from legnn.nn.layer import channels_per_head
from legnn.nn.lifting import lift
from legnn.nn.sage import SAGE

if TYPE_CHECKING:
    from legnn.config.model import ModelSettings

Backbone = Callable[["ModelSettings", int, bool, bool], nn.Module]
"""Makes one layer from the settings, its channels, whether it is label-enhanced, and whether it updates labels."""


def _own(layer: Callable[..., nn.Module], *names: str) -> Backbone:
    """A backbone from a layer of this library, which takes the settings `names` besides those that all layers take."""

    def backbone(settings: ModelSettings, channels: int, enhanced: bool, update_labels: bool) -> nn.Module:
        options = {name: getattr(settings, name) for name in ("normalize", *names)}
        # a batch norm would cancel the bias
        bias = settings.norm != "batch"
        return layer(channels, channels, enhanced=enhanced, update_labels=update_labels, bias=bias, **options)

    return backbone


def lifted(make: Callable[[ModelSettings, tuple[int, int], int], nn.Module]) -> Backbone:
    """Returns a backbone from a maker of bipartite PyG convolutions `(settings, channels, out) → convolution`."""

    def backbone(settings: ModelSettings, channels: int, enhanced: bool, update_labels: bool) -> nn.Module:
        layer = lift(lambda both, out: make(settings, both, out))
        return layer(channels, channels, enhanced=enhanced, update_labels=update_labels, normalize=settings.normalize)

    return backbone


def _gatv2(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    return GATv2Conv(both, channels_per_head(out, settings.heads), heads=settings.heads, add_self_loops=False)


def _transformer(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    return TransformerConv(both, channels_per_head(out, settings.heads), heads=settings.heads)


def _gin(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    return GINConv(nn.Sequential(nn.Linear(both[0], out), nn.ReLU(), nn.Linear(out, out)), train_eps=True)


BACKBONES: dict[str, Backbone] = {
    "gcn": _own(GCN),
    "sage": _own(SAGE),
    "gat": _own(GAT, "heads", "target_attention", "symmetric_norm", "label_edges"),
    "gatv2": lifted(_gatv2),
    "transformer": lifted(_transformer),
    "gin": lifted(_gin),
}
"""The first three are layers of this library; the others are PyG's convolutions, lifted."""


def register_backbone(name: str, backbone: Backbone) -> None:
    """Registers a backbone, usually one made by `lifted`, under a name for the setting `backbone`."""
    if name in BACKBONES:
        raise ValueError(f"there is already a backbone named {name!r}")
    BACKBONES[name] = backbone
    register_choice(BACKBONE_NAMES, name)
