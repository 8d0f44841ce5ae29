"""The backbones by name. A new one is a line here, or `register_backbone` from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
        options = _options(settings, enhanced, update_labels)
        options |= {name: getattr(settings, name) for name in names}
        # a batch norm would cancel the bias
        bias = settings.bias and settings.norm != "batch"
        label_bias = settings.bias and (settings.norm == "none" or settings.label_norm != "batch")
        return layer(channels, channels, bias=bias, label_bias=label_bias, **options)

    return backbone


def lifted(make: Callable[[ModelSettings, tuple[int, int], int], nn.Module]) -> Backbone:
    """Returns a backbone from a maker of bipartite PyG convolutions `(settings, channels, out) → convolution`."""

    def backbone(settings: ModelSettings, channels: int, enhanced: bool, update_labels: bool) -> nn.Module:
        layer = lift(lambda both, out: make(settings, both, out))
        return layer(channels, channels, **_options(settings, enhanced, update_labels))

    return backbone


def _options(settings: ModelSettings, enhanced: bool, update_labels: bool) -> dict[str, Any]:
    """What every layer takes."""
    options = {name: getattr(settings, name) for name in ("normalize", "node_weight", "absent_label")}
    return {"enhanced": enhanced, "update_labels": update_labels, "dropout": settings.layer_dropout, **options}


def _gatv2(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    width = channels_per_head(out, settings.heads)
    return GATv2Conv(both, width, heads=settings.heads, add_self_loops=False, bias=settings.bias)


def _transformer(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    return TransformerConv(both, channels_per_head(out, settings.heads), heads=settings.heads, bias=settings.bias)


def _gin(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    first, second = (nn.Linear(width, out, bias=settings.bias) for width in (both[0], out))
    return GINConv(nn.Sequential(first, nn.ReLU(), second), train_eps=True)


ATTENTION = (
    "heads", "target_attention", "symmetric_norm", "scaled_scores", "attention_vectors", "target_map", "label_edges"
)  # fmt: skip
"""The settings that gat alone has."""

BACKBONES: dict[str, Backbone] = {
    "gcn": _own(GCN),
    "sage": _own(SAGE),
    "gat": _own(GAT, *ATTENTION),
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
