"""The settings that `legnn auto` chooses from: complete, each with a name.

They span backbones, label usages with and without AS-Train, depth, width, norm, residual, penalties and class weights,
and models that are no graph neural network. What is best where is not decided here: `benchmarks.portfolio` orders them
by what every one of them reached on real graphs, and writes `portfolio.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from legnn.config.designs import CONSTANT, DESIGNS, Values

WIDE = {
    "hidden": 512, "layers": 2, "norm": "layer", "residual": "linear", "dropout": 0.3, "input_dropout": 0.0,
    "lr": 0.001, "weight_decay": 5e-4, "layer_decay": 5e-4, "alpha": 0.5, "epochs": 400, "patience": 50, **CONSTANT,
}  # fmt: skip
"""Informative features, kept by a linear residual."""

STRONG = {
    "hidden": 64, "layers": 2, "norm": "none", "residual": "none", "dropout": 0.5, "input_dropout": 0.5,
    "lr": 0.003, "weight_decay": 0.05, "layer_decay": 0.0, "alpha": 0.7, "epochs": 300, "patience": 100,
    "cosine_steps": "epochs",
}  # fmt: skip
"""Few labels: narrow, with a strong penalty on the projection of the features."""

MIDDLE = {
    "hidden": 256, "layers": 3, "norm": "batch", "residual": "linear", "dropout": 0.5, "input_dropout": 0.1,
    "lr": 0.01, "weight_decay": 0.0, "layer_decay": 0.0, "alpha": 0.5, "epochs": 300, "patience": 80,
    "cosine_steps": "epochs",
}  # fmt: skip
"""Many labels: no penalty, a learning rate that falls."""

DEEP = WIDE | {"hidden": 256, "layers": 5, "dropout": 0.2, "lr": 0.002, "weight_decay": 0.0, "layer_decay": 0.0}
"""Structure several hops away."""

THREE = WIDE | {"layers": 3, "residual": "none", "dropout": 0.5, "weight_decay": 5e-5, "layer_decay": 5e-5}
"""Informative neighbors, as on graphs of products bought together."""

DECAY = MIDDLE | {"layers": 4, "dropout": 0.7, "weight_decay": 5e-4, "layer_decay": 5e-4}
"""Few nodes and misleading neighbors: a penalty on all weights."""

PLAIN = STRONG | {
    "hidden": 512, "dropout": 0.7, "lr": 0.001, "weight_decay": 5e-4, "layer_decay": 5e-4, "epochs": 500, **CONSTANT,
}  # fmt: skip
"""Few labels: wide, without norm, with much dropout."""

VERY_DEEP = DEEP | {"hidden": 128, "layers": 8, "norm": "batch", "lr": 0.005}


_OF_DESIGN = {
    "backbone": "gcn", "residual": "none", "weight_decay": 0.0, "layer_decay": 0.0, "alpha": 0.5, "epochs": 300,
    "patience": 60,
}  # fmt: skip
"""What a design leaves open."""


class Candidate(NamedTuple):
    """Settings to try."""

    values: Mapping[str, Any]
    """Settings by name; the preset `simple` chooses what is missing."""
    group: str
    """The method of a comparison that it is a setting of; `legnn` for ours."""
    is_typed: bool = False
    """Whether it needs several node types."""


def _legnn(settings: Values, backbone: str = "gcn", **more: Any) -> Candidate:
    return Candidate({**settings, "backbone": backbone, "labels": "enhanced", **_fitting(backbone), **more}, "legnn")


def _plain(settings: Values, backbone: str, **more: Any) -> Candidate:
    return Candidate({**settings, "backbone": backbone, "labels": "vanilla", **_fitting(backbone), **more}, backbone)


def _fitting(backbone: str) -> Values:
    # GraphSAGE's root weight is a linear residual already
    return {"residual": "identity"} if backbone == "sage" else {}


def _of_design(name: str, settings: Values, **more: Any) -> Candidate:
    design = DESIGNS[name]
    return Candidate({**_OF_DESIGN, **design.model, **settings, **more}, name, design.is_typed)


def _propagation(alpha: float, steps: int = 50) -> Candidate:
    values = {"architecture": "label_propagation", "propagation_alpha": alpha, "propagation_steps": steps}
    return Candidate(values, "label_propagation")


def _trees(leaves: int, trees: int, rate: float) -> Candidate:
    values = {"architecture": "boosted_trees", "tree_leaves": leaves, "trees": trees, "tree_rate": rate}
    return Candidate(values, "boosted_trees")


_AS_TRAIN: dict[str, Any] = {"as_train": True}
_SHORT: dict[str, Any] = {"epochs": 600, "patience": 100}
_GCNII, _APPNP, _UNIMP = DESIGNS["gcnii"], DESIGNS["appnp"], DESIGNS["unimp"]

CANDIDATES: dict[str, Candidate] = {
    "legnn-gcn-wide": _legnn(WIDE),
    "legnn-gat-wide": _legnn(WIDE, "gat"),
    "legnn-sage-wide": _legnn(WIDE, "sage"),
    "legnn-gcn-wide-as-train": _legnn(WIDE, **_AS_TRAIN),
    "legnn-gat-wide-as-train": _legnn(WIDE, "gat", **_AS_TRAIN),
    "legnn-gcn-strong": _legnn(STRONG),
    "legnn-gat-strong-as-train": _legnn(STRONG, "gat", **_AS_TRAIN),
    "legnn-gcn-plain": _legnn(PLAIN),
    "legnn-gcn-plain-as-train": _legnn(PLAIN, **_AS_TRAIN),
    "legnn-gcn-middle": _legnn(MIDDLE),
    "legnn-gcn-decay": _legnn(DECAY),
    "legnn-gat-decay": _legnn(DECAY, "gat"),
    "legnn-gcn-three": _legnn(THREE),
    "legnn-gcn-deep": _legnn(DEEP),
    "legnn-gat-deep": _legnn(DEEP, "gat"),
    "legnn-sage-very-deep": _legnn(VERY_DEEP, "sage"),
    "legnn-gcn-joint": _legnn(WIDE, hidden=256, normalize="joint"),
    "legnn-gcn-one-layer": _legnn(WIDE, layers=1),
    "legnn-gcn-balanced": _legnn(WIDE, class_weights="balanced"),
    "legnn-appnp-small": _of_design("appnp", _APPNP.few, labels="enhanced", alpha=0.7, **_SHORT)._replace(
        group="legnn"
    ),
    "legnn-gcnii-wide": _of_design("gcnii", _GCNII.more[0], labels="enhanced")._replace(group="legnn"),
    "addition-gat-deep": _legnn(DEEP, "gat", labels="addition", layers=3, hidden=512),
    "gcn-wide": _plain(WIDE, "gcn"),
    "gcn-direct": Candidate(
        {**STRONG, "architecture": "pyg_gcn", "scale": "row", "lr": 0.01, "weight_decay": 5e-4, **CONSTANT}, "gcn"
    ),
    "gcn-direct-wide": Candidate({**PLAIN, "architecture": "pyg_gcn", "scale": "row", "layers": 3}, "gcn"),
    "gcn-strong": _plain(STRONG, "gcn"),
    "gcn-decay": _plain(DECAY, "gcn"),
    "gcn-three": _plain(THREE, "gcn"),
    "gcn-middle": _plain(MIDDLE, "gcn"),
    "gcn-deep": _plain(DEEP, "gcn"),
    "gcn-very-deep": _plain(VERY_DEEP, "gcn"),
    "sage-wide": _plain(WIDE, "sage"),
    "sage-strong": _plain(STRONG, "sage"),
    "sage-middle": _plain(MIDDLE, "sage"),
    "sage-decay": _plain(DECAY, "sage"),
    "gat-wide": _plain(WIDE, "gat"),
    "gat-strong": _plain(STRONG, "gat"),
    "gat-decay": _plain(DECAY, "gat"),
    "gat-deep": _plain(DEEP, "gat"),
    "gcnii-small": _of_design("gcnii", _GCNII.few, **_SHORT),
    "gcnii-middle": _of_design("gcnii", _GCNII.many),
    "gcnii-wide": _of_design("gcnii", _GCNII.more[0]),
    "appnp-small": _of_design("appnp", _APPNP.few, **_SHORT),
    "appnp-middle": _of_design("appnp", _APPNP.many),
    "appnp-wide": _of_design("appnp", _APPNP.more[0]),
    "unimp-small": _of_design("unimp", _UNIMP.few),
    "unimp-middle": _of_design("unimp", _UNIMP.many),
    "unimp-wide": _of_design("unimp", _UNIMP.more[0]),
    "dagnn-small": _of_design("dagnn", DESIGNS["dagnn"].few, **_SHORT),
    "mlp-wide": Candidate({**WIDE, "architecture": "mlp"}, "mlp"),
    "label-propagation": _propagation(0.9),
    "label-propagation-far": _propagation(0.99),
    "label-propagation-near": _propagation(0.5),
    "label-propagation-short": _propagation(0.9, 5),
    "boosted-trees": _trees(16, 100, 0.1),
    "boosted-trees-small": _trees(6, 150, 0.1),
    "rgcn": _of_design("rgcn", DESIGNS["rgcn"].few),
    "rgcn-wide": _of_design("rgcn", DESIGNS["rgcn"].more[0]),
    "hgt": _of_design("hgt", DESIGNS["hgt"].more[0]),
    "metapath-labels": _of_design("metapath_labels", DESIGNS["metapath_labels"].few)._replace(is_typed=True),
    "metapath-labels-wide": _of_design("metapath_labels", DESIGNS["metapath_labels"].more[0])._replace(is_typed=True),
    "legnn-rgcn": _of_design("rgcn", DESIGNS["rgcn"].few, labels="enhanced", alpha=0.7)._replace(group="legnn"),
    "legnn-rgcn-wide": _of_design("rgcn", DESIGNS["rgcn"].more[0], labels="enhanced")._replace(group="legnn"),
    "legnn-hgt": _of_design("hgt", DESIGNS["hgt"].more[0], labels="enhanced")._replace(group="legnn"),
}
"""By name. A name is kept in portfolios and folders: one whose settings change gets another."""
