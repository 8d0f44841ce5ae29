"""The backbones by name. A new one is a line here, or `register_backbone` from outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from torch import nn

from legnn.config.model import BACKBONES as BACKBONE_NAMES
from legnn.config.model import ModelSettings, PublishedSettings, register_choice
from legnn.errors import InputError
from legnn.lazy import lazy_module
from legnn.nn.gat import GAT
from legnn.nn.gcn import GCN
from legnn.nn.gcnii import GCNII
from legnn.nn.hgt import HGT
from legnn.nn.layer import LabelLayer, LayerOptions, channels_per_head
from legnn.nn.published import GAT_VARIANTS, PublishedGAT, published_lift, published_normalization
from legnn.nn.rgcn import RGCN
from legnn.nn.sage import SAGE

pyg_nn = lazy_module("torch_geometric.nn")


class LayerSpec(NamedTuple):
    """The input of a `Backbone`: settings, and the position of a layer in the model."""

    settings: ModelSettings
    update_labels: bool = True
    """Whether it computes labels, where they are nodes; the last layer does not."""
    depth: int = 1
    """Number of the layer, from 1."""
    num_types: int = 1
    """Node types."""
    relations: tuple[tuple[int, int], ...] = ()
    """Source and target type of the edges that there are; none for a homogeneous graph."""

    @property
    def channels(self) -> int:
        """`D`, in and out."""
        return self.settings.hidden

    @property
    def enhanced(self) -> bool:
        """Whether labels are nodes."""
        return self.settings.labels == "enhanced"

    @property
    def options(self) -> LayerOptions:
        """The options that all layers have."""
        settings = self.settings
        return {
            "enhanced": self.enhanced,
            "update_labels": self.update_labels,
            "normalize": settings.normalize,
            # a batch norm would cancel the bias
            "bias": settings.bias and settings.norm != "batch",
            "label_bias": settings.bias and (settings.norm == "none" or settings.published.label_norm != "batch"),
            "dropout": settings.published.layer_dropout,
        }


Backbone = Callable[[LayerSpec], LabelLayer]
"""Makes one layer."""


def _with_published_normalization(layer: GCN | SAGE | GCNII, settings: ModelSettings) -> LabelLayer:
    layer.normalization = published_normalization(layer.normalization, settings)
    return layer


def _plain(layer: type[GCN | SAGE], spec: LayerSpec) -> LabelLayer:
    return _with_published_normalization(layer(spec.channels, spec.channels, **spec.options), spec.settings)


def _gcnii(spec: LayerSpec) -> LabelLayer:
    settings = spec.settings
    beta = math.log(settings.gcnii.identity_decay / spec.depth + 1)
    layer = GCNII(spec.channels, restart=settings.appnp.teleport, beta=beta, **spec.options)
    return _with_published_normalization(layer, settings)


def _gat(spec: LayerSpec) -> LabelLayer:
    settings, plain = spec.settings, PublishedSettings()
    heads, label_edges = settings.attention.heads, settings.label_edges
    if all(getattr(settings.published, name) == getattr(plain, name) for name in (*GAT_VARIANTS, "layer_dropout")):
        return GAT(spec.channels, spec.channels, heads=heads, label_edges=label_edges, **spec.options)
    return PublishedGAT(
        spec.channels, spec.channels, settings.published, heads=heads, label_edges=label_edges, **spec.options
    )


def _rgcn(spec: LayerSpec) -> LabelLayer:
    _check_relations(spec)
    return RGCN(
        spec.channels, spec.channels, num_types=spec.num_types, relations=spec.relations,
        label_edges=spec.settings.label_edges, **spec.options,
    )  # fmt: skip


def _hgt(spec: LayerSpec) -> LabelLayer:
    _check_relations(spec)
    return HGT(
        spec.channels, spec.channels, heads=spec.settings.attention.heads, num_types=spec.num_types,
        relations=spec.relations, label_edges=spec.settings.label_edges, projection_bias=spec.settings.bias,
        **spec.options,
    )  # fmt: skip


def _check_relations(spec: LayerSpec) -> None:
    """Raises `InputError` for a normalization of all of `A'` in a layer with weights for each relation."""
    settings = spec.settings
    if spec.enhanced and settings.normalize != "relation":
        raise InputError(
            f"normalize = {settings.normalize!r} needs gcn, sage or gat: {settings.backbone} has its own weights "
            "within and between relations; give normalize = 'relation'"
        )


def lifted(make: Callable[[ModelSettings, tuple[int, int], int], nn.Module]) -> Backbone:
    """Returns a backbone from a maker of bipartite PyG convolutions `(settings, channels, out) → convolution`."""

    def backbone(spec: LayerSpec) -> LabelLayer:
        return published_lift(
            lambda both, out: make(spec.settings, both, out), spec.channels, spec.settings, spec.options
        )

    return backbone


def _gatv2(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    width = channels_per_head(out, settings.attention.heads)
    return pyg_nn.GATv2Conv(both, width, heads=settings.attention.heads, add_self_loops=False, bias=settings.bias)


def _transformer(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    width = channels_per_head(out, settings.attention.heads)
    return pyg_nn.TransformerConv(both, width, heads=settings.attention.heads, bias=settings.bias)


def _gin(settings: ModelSettings, both: tuple[int, int], out: int) -> nn.Module:
    first, second = (nn.Linear(width, out, bias=settings.bias) for width in (both[0], out))
    return pyg_nn.GINConv(nn.Sequential(first, nn.ReLU(), second), train_eps=True)


BACKBONES: dict[str, Backbone] = {
    "gcn": partial(_plain, GCN),
    "sage": partial(_plain, SAGE),
    "gat": _gat,
    "gcnii": _gcnii,
    "gatv2": lifted(_gatv2),
    "transformer": lifted(_transformer),
    "gin": lifted(_gin),
    "rgcn": _rgcn,
    "hgt": _hgt,
}
"""gatv2, transformer and gin are PyG's convolutions, lifted; the others are layers of this library."""

REGISTERED: set[str] = set()
"""Names of those from outside, which other processes do not have."""


def require_known_everywhere(name: str) -> None:
    """Raises `InputError` for a backbone that was registered, where other processes are to train it."""
    if name in REGISTERED:
        raise InputError(
            f"backbone = {name!r} was registered in this process, and other processes, which would train it, do not "
            "have it; use `train`, `train_seeds`, `cross_fit` or `auto`"
        )


def register_backbone(name: str, backbone: Backbone) -> None:
    """Registers a backbone, usually one made by `lifted`, under a name for the setting `backbone`."""
    if name in BACKBONES:
        raise ValueError(f"there is already a backbone named {name!r}")
    BACKBONES[name] = backbone
    REGISTERED.add(name)
    register_choice(BACKBONE_NAMES, name)
