"""The backbones by name. A new one is a line here, or `register_backbone` from outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn

from legnn.config.model import BACKBONES as BACKBONE_NAMES
from legnn.config.model import ModelSettings, register_choice
from legnn.errors import InputError
from legnn.lazy import lazy_module
from legnn.nn.gat import GAT
from legnn.nn.gcn import GCN
from legnn.nn.gcnii import GCNII
from legnn.nn.hgt import HGT
from legnn.nn.layer import channels_per_head
from legnn.nn.lifting import lift
from legnn.nn.rgcn import RGCN
from legnn.nn.sage import SAGE

pyg_nn = lazy_module("torch_geometric.nn")


class LayerSpec(NamedTuple):
    """What a layer is made from."""

    settings: ModelSettings
    channels: int
    """`D`, in and out."""
    enhanced: bool
    """Whether labels are nodes."""
    update_labels: bool
    """Whether it computes labels; the last layer does not."""
    depth: int = 1
    """Its number, from 1."""
    num_types: int = 1
    """Node types."""
    relations: tuple[tuple[int, int], ...] = ()
    """Source and target type of the edges that there are; none for a homogeneous graph."""


Backbone = Callable[[LayerSpec], nn.Module]
"""Makes one layer."""


def _own(layer: Callable[..., nn.Module], *names: str) -> Backbone:
    """A backbone from a layer of this library, which takes the settings `names` besides those that all layers take."""

    def backbone(spec: LayerSpec) -> nn.Module:
        options = _options(spec) | _biases(spec.settings) | {name: getattr(spec.settings, name) for name in names}
        return layer(spec.channels, spec.channels, **options)

    return backbone


def _typed(layer: Callable[..., nn.Module], **names: str) -> Backbone:
    """A backbone from a layer that tells relations apart, each with weights of its own in place of a normalization.

    `names` are settings that it takes besides those that all layers take, by the names it has for them.
    """

    def backbone(spec: LayerSpec) -> nn.Module:
        settings = spec.settings
        if spec.enhanced and settings.normalize != "relation":
            raise InputError(
                f"normalize = {settings.normalize!r} needs gcn, sage or gat: {settings.backbone} has its own weights "
                "within and between relations; give normalize = 'relation'"
            )
        return layer(
            spec.channels, spec.channels, num_types=spec.num_types, relations=spec.relations, enhanced=spec.enhanced,
            update_labels=spec.update_labels, label_edges=settings.label_edges, dropout=settings.layer_dropout,
            **{name: getattr(settings, given) for name, given in names.items()}, **_biases(settings),
        )  # fmt: skip

    return backbone


def _gcnii(spec: LayerSpec) -> nn.Module:
    settings = spec.settings
    beta = math.log(settings.identity_decay / spec.depth + 1)
    return GCNII(spec.channels, restart=settings.restart, beta=beta, **_options(spec))


def lifted(make: Callable[[ModelSettings, tuple[int, int], int], nn.Module]) -> Backbone:
    """Returns a backbone from a maker of bipartite PyG convolutions `(settings, channels, out) → convolution`."""

    def backbone(spec: LayerSpec) -> nn.Module:
        layer = lift(lambda both, out: make(spec.settings, both, out))
        return layer(spec.channels, spec.channels, **_options(spec))

    return backbone


def _options(spec: LayerSpec) -> dict[str, Any]:
    """What every layer takes."""
    options = {name: getattr(spec.settings, name) for name in ("normalize", "node_weight", "absent_label")}
    dropout = spec.settings.layer_dropout
    return {"enhanced": spec.enhanced, "update_labels": spec.update_labels, "dropout": dropout, **options}


def _biases(settings: ModelSettings) -> dict[str, bool]:
    # a batch norm would cancel the bias
    bias = settings.bias and settings.norm != "batch"
    return {"bias": bias, "label_bias": settings.bias and (settings.norm == "none" or settings.label_norm != "batch")}


def _gatv2(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    width = channels_per_head(out, settings.heads)
    return pyg_nn.GATv2Conv(both, width, heads=settings.heads, add_self_loops=False, bias=settings.bias)


def _transformer(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    width = channels_per_head(out, settings.heads)
    return pyg_nn.TransformerConv(both, width, heads=settings.heads, bias=settings.bias)


def _gin(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    first, second = (nn.Linear(width, out, bias=settings.bias) for width in (both[0], out))
    return pyg_nn.GINConv(nn.Sequential(first, nn.ReLU(), second), train_eps=True)


ATTENTION = (
    "heads", "target_attention", "symmetric_norm", "scaled_scores", "attention_vectors", "target_map", "label_edges"
)  # fmt: skip
"""The settings that gat alone has."""

BACKBONES: dict[str, Backbone] = {
    "gcn": _own(GCN),
    "sage": _own(SAGE),
    "gat": _own(GAT, *ATTENTION),
    "gcnii": _gcnii,
    "gatv2": lifted(_gatv2),
    "transformer": lifted(_transformer),
    "gin": lifted(_gin),
    "rgcn": _typed(RGCN),
    "hgt": _typed(HGT, heads="heads", projection_bias="bias"),
}
"""gatv2, transformer and gin are PyG's convolutions, lifted; the others are layers of this library."""

REGISTERED: set[str] = set()
"""Names of those from outside, which other processes do not have."""


def require_known_everywhere(name: str) -> None:
    """Raises `InputError` for a backbone that was registered, where other processes are to train it."""
    if name in REGISTERED:
        raise InputError(
            f"backbone = {name!r} was registered in this process, and other processes, which would train it, do not "
            "have it; use `train`, `train_seeds` or `tune`"
        )


def register_backbone(name: str, backbone: Backbone) -> None:
    """Registers a backbone, usually one made by `lifted`, under a name for the setting `backbone`."""
    if name in BACKBONES:
        raise ValueError(f"there is already a backbone named {name!r}")
    BACKBONES[name] = backbone
    REGISTERED.add(name)
    register_choice(BACKBONE_NAMES, name)
