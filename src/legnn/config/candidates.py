"""The settings that `legnn auto` chooses from: complete, each with a name.

They span backbones, label usages with and without AS-Train, depth, width, norm, residual, penalties and class weights,
and models that are no graph neural network. What is best where is not decided here: `benchmarks.portfolio` orders them
by what every one of them reached on real graphs, and writes `portfolio.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from legnn.config.designs import CONSTANT, DESIGNS, Values

WIDE = {
    "model.hidden": 512,
    "model.layers": 2,
    "model.norm": "layer",
    "model.residual": "linear",
    "model.dropout": 0.3,
    "model.input_dropout": 0.0,
    "train.lr": 0.001,
    "train.weight_decay": 5e-4,
    "train.weight_decay_layers": 5e-4,
    "train.alpha": 0.5,
    "train.epochs": 400,
    "train.patience": 50,
    **CONSTANT,
}
"""Informative features, kept by a linear residual."""

STRONG = {
    "model.hidden": 64,
    "model.layers": 2,
    "model.norm": "none",
    "model.residual": "none",
    "model.dropout": 0.5,
    "model.input_dropout": 0.5,
    "train.lr": 0.003,
    "train.weight_decay": 0.05,
    "train.weight_decay_layers": 0.0,
    "train.alpha": 0.7,
    "train.epochs": 300,
    "train.patience": 100,
    "train.cosine_steps": "epochs",
}
"""Few labels: narrow, with a strong penalty on the projection of the features."""

MIDDLE = {
    "model.hidden": 256,
    "model.layers": 3,
    "model.norm": "batch",
    "model.residual": "linear",
    "model.dropout": 0.5,
    "model.input_dropout": 0.1,
    "train.lr": 0.01,
    "train.weight_decay": 0.0,
    "train.weight_decay_layers": 0.0,
    "train.alpha": 0.5,
    "train.epochs": 300,
    "train.patience": 80,
    "train.cosine_steps": "epochs",
}
"""Many labels: no penalty, a learning rate that falls."""

DEEP = WIDE | {
    "model.hidden": 256,
    "model.layers": 5,
    "model.dropout": 0.2,
    "train.lr": 0.002,
    "train.weight_decay": 0.0,
    "train.weight_decay_layers": 0.0,
}
"""Structure several hops away."""

THREE = WIDE | {
    "model.layers": 3,
    "model.residual": "none",
    "model.dropout": 0.5,
    "train.weight_decay": 5e-5,
    "train.weight_decay_layers": 5e-5,
}
"""Informative neighbors, as on graphs of products bought together."""

DECAY = MIDDLE | {
    "model.layers": 4,
    "model.dropout": 0.7,
    "train.weight_decay": 5e-4,
    "train.weight_decay_layers": 5e-4,
}
"""Few nodes and misleading neighbors: a penalty on all weights."""

PLAIN = STRONG | {
    "model.hidden": 512,
    "model.dropout": 0.7,
    "train.lr": 0.001,
    "train.weight_decay": 5e-4,
    "train.weight_decay_layers": 5e-4,
    "train.epochs": 500,
    **CONSTANT,
}
"""Few labels: wide, without norm, with much dropout."""

VERY_DEEP = DEEP | {"model.hidden": 128, "model.layers": 8, "model.norm": "batch", "train.lr": 0.005}


_OF_DESIGN = {
    "model.backbone": "gcn",
    "model.residual": "none",
    "train.weight_decay": 0.0,
    "train.weight_decay_layers": 0.0,
    "train.alpha": 0.5,
    "train.epochs": 300,
    "train.patience": 60,
}
"""Settings that a design leaves open."""


class Candidate(NamedTuple):
    """Settings to try."""

    values: Mapping[str, Any]
    """Settings by name; the preset `simple` chooses what is missing."""
    group: str
    """The method of a comparison that it is a setting of; `legnn` for ours."""
    is_typed: bool = False
    """Whether it needs several node types."""


def _legnn(settings: Values, more: Values = MappingProxyType({}), backbone: str = "gcn") -> Candidate:
    return Candidate(
        {**settings, "model.backbone": backbone, "model.labels": "enhanced", **_fitting(backbone), **more}, "legnn"
    )


def _plain(settings: Values, backbone: str) -> Candidate:
    return Candidate(
        {**settings, "model.backbone": backbone, "model.labels": "vanilla", **_fitting(backbone)}, backbone
    )


def _fitting(backbone: str) -> Values:
    # GraphSAGE's root weight is a linear residual already
    return {"model.residual": "identity"} if backbone == "sage" else {}


def _of_design(name: str, settings: Values, more: Values = MappingProxyType({})) -> Candidate:
    design = DESIGNS[name]
    return Candidate({**_OF_DESIGN, **design.model, **settings, **more}, name, design.is_typed)


def _propagation(alpha: float, steps: int = 50) -> Candidate:
    values = {
        "model.architecture": "label_propagation",
        "model.label_propagation.alpha": alpha,
        "model.label_propagation.steps": steps,
    }
    return Candidate(values, "label_propagation")


def _trees(leaves: int, trees: int, rate: float) -> Candidate:
    values = {
        "model.architecture": "boosted_trees",
        "model.boosted_trees.leaves": leaves,
        "model.boosted_trees.trees": trees,
        "model.boosted_trees.learning_rate": rate,
    }
    return Candidate(values, "boosted_trees")


_AS_TRAIN: dict[str, Any] = {"self_training.as_train": True}
_SHORT: dict[str, Any] = {"train.epochs": 600, "train.patience": 100}
_ENHANCED: dict[str, Any] = {"model.labels": "enhanced"}
_GCNII, _APPNP, _UNIMP = DESIGNS["gcnii"], DESIGNS["appnp"], DESIGNS["unimp"]

CANDIDATES: dict[str, Candidate] = {
    "legnn-gcn-wide": _legnn(WIDE),
    "legnn-gat-wide": _legnn(WIDE, backbone="gat"),
    "legnn-sage-wide": _legnn(WIDE, backbone="sage"),
    "legnn-gcn-wide-as-train": _legnn(WIDE, _AS_TRAIN),
    "legnn-gat-wide-as-train": _legnn(WIDE, _AS_TRAIN, "gat"),
    "legnn-gcn-strong": _legnn(STRONG),
    "legnn-gat-strong-as-train": _legnn(STRONG, _AS_TRAIN, "gat"),
    "legnn-gcn-plain": _legnn(PLAIN),
    "legnn-gcn-plain-as-train": _legnn(PLAIN, _AS_TRAIN),
    "legnn-gcn-middle": _legnn(MIDDLE),
    "legnn-gcn-decay": _legnn(DECAY),
    "legnn-gat-decay": _legnn(DECAY, backbone="gat"),
    "legnn-gcn-three": _legnn(THREE),
    "legnn-gcn-deep": _legnn(DEEP),
    "legnn-gat-deep": _legnn(DEEP, backbone="gat"),
    "legnn-sage-very-deep": _legnn(VERY_DEEP, backbone="sage"),
    "legnn-gcn-joint": _legnn(WIDE, {"model.hidden": 256, "model.normalize": "joint"}),
    "legnn-gcn-one-layer": _legnn(WIDE, {"model.layers": 1}),
    "legnn-gcn-balanced": _legnn(WIDE, {"train.class_weights": "balanced"}),
    "legnn-appnp-small": _of_design("appnp", _APPNP.few, {**_ENHANCED, "train.alpha": 0.7, **_SHORT})._replace(
        group="legnn"
    ),
    "legnn-gcnii-wide": _of_design("gcnii", _GCNII.more[0], _ENHANCED)._replace(group="legnn"),
    "addition-gat-deep": _legnn(DEEP, {"model.labels": "addition", "model.layers": 3, "model.hidden": 512}, "gat"),
    "gcn-wide": _plain(WIDE, "gcn"),
    "gcn-direct": Candidate(
        {
            **STRONG,
            "model.architecture": "pyg_gcn",
            "model.feature_scale": "row",
            "train.lr": 0.01,
            "train.weight_decay": 5e-4,
            **CONSTANT,
        },
        "gcn",
    ),
    "gcn-direct-wide": Candidate(
        {**PLAIN, "model.architecture": "pyg_gcn", "model.feature_scale": "row", "model.layers": 3}, "gcn"
    ),
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
    "gcnii-small": _of_design("gcnii", _GCNII.few, _SHORT),
    "gcnii-middle": _of_design("gcnii", _GCNII.many),
    "gcnii-wide": _of_design("gcnii", _GCNII.more[0]),
    "appnp-small": _of_design("appnp", _APPNP.few, _SHORT),
    "appnp-middle": _of_design("appnp", _APPNP.many),
    "appnp-wide": _of_design("appnp", _APPNP.more[0]),
    "unimp-small": _of_design("unimp", _UNIMP.few),
    "unimp-middle": _of_design("unimp", _UNIMP.many),
    "unimp-wide": _of_design("unimp", _UNIMP.more[0]),
    "dagnn-small": _of_design("dagnn", DESIGNS["dagnn"].few, _SHORT),
    "mlp-wide": Candidate({**WIDE, "model.architecture": "mlp"}, "mlp"),
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
    "legnn-rgcn": _of_design("rgcn", DESIGNS["rgcn"].few, {**_ENHANCED, "train.alpha": 0.7})._replace(group="legnn"),
    "legnn-rgcn-wide": _of_design("rgcn", DESIGNS["rgcn"].more[0], _ENHANCED)._replace(group="legnn"),
    "legnn-hgt": _of_design("hgt", DESIGNS["hgt"].more[0], _ENHANCED)._replace(group="legnn"),
}
"""By name. A name is kept in portfolios and folders: one whose settings change gets another."""
