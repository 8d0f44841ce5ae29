"""The designs that the paper compares with: what each is made of, and the settings its authors used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

Values = Mapping[str, Any]
"""Settings by name."""


class Design(NamedTuple):
    """A model of another paper. `legnn train DATA --preset NAME` trains it with its paper's settings."""

    title: str
    """As papers call it."""
    model: Values
    """The settings that make it this design."""
    few: Values = MappingProxyType({})
    """Settings of its authors for a citation graph with few labels, or what comes closest."""
    many: Values = MappingProxyType({})
    """Settings of its authors for a large graph with many labels, or what comes closest."""
    more: Sequence[Values] = ()
    """Settings that comparisons try beside those two."""
    by_data: Mapping[str, Values] = MappingProxyType({})
    """Settings of its authors that differ for a data set."""
    is_typed: bool = False
    """Whether it needs several node types."""

    def candidates(self, *, has_few_labels: bool) -> Sequence[Values]:
        """The settings that comparisons try, the most promising first; none for those that all models share."""
        if not self.more:
            return ()
        return (self.few, self.many, *self.more) if has_few_labels else (self.many, *self.more, self.few)


def _of(backbone: str) -> Values:
    return {"model.backbone": backbone, "model.labels": "vanilla"}


def _typed(model: Values) -> Values:
    # a root matrix or a residual has the part of self-loops, which would make a relation for every type
    return {**model, "data.self_loops": False}


CONSTANT = {"train.cosine_steps": 1_000_000}
"""A learning rate that does not fall: training goes on as long as validation improves within `patience` epochs."""
_SMALL = {
    "model.hidden": 64,
    "model.layers": 2,
    "model.norm": "none",
    "model.dropout": 0.5,
    "model.input_dropout": 0.5,
    "train.lr": 0.01,
}
_ALL_5E4 = {"train.weight_decay": 5e-4, "train.weight_decay_layers": 5e-4}
_WIDE = {
    "model.hidden": 512,
    "model.layers": 2,
    "model.norm": "layer",
    "model.dropout": 0.3,
    "model.input_dropout": 0.0,
    "train.lr": 0.001,
} | _ALL_5E4
_MIDDLE = {
    "model.hidden": 256,
    "model.layers": 3,
    "model.norm": "batch",
    "model.dropout": 0.5,
    "model.input_dropout": 0.1,
    "train.lr": 0.01,
}
_MIDDLE |= {"train.weight_decay": 0.0, "train.weight_decay_layers": 0.0}
_TYPED_TRIED = (
    {
        "model.hidden": 64,
        "model.layers": 2,
        "model.norm": "none",
        "model.dropout": 0.5,
        "model.input_dropout": 0.2,
        "train.lr": 0.005,
        **_ALL_5E4,
    },
    {
        "model.hidden": 256,
        "model.layers": 2,
        "model.norm": "layer",
        "model.dropout": 0.5,
        "model.input_dropout": 0.0,
        "train.lr": 0.001,
    },
    {
        "model.hidden": 256,
        "model.layers": 3,
        "model.norm": "layer",
        "model.dropout": 0.3,
        "model.input_dropout": 0.1,
        "train.lr": 0.003,
    },
)

DESIGNS: dict[str, Design] = {
    "label_propagation": Design(
        "Label propagation",
        {"model.architecture": "label_propagation"},
        few={"model.label_propagation.alpha": 0.9},
        many={"model.label_propagation.alpha": 0.99},
        more=(
            {"model.label_propagation.alpha": 0.5},
            {"model.label_propagation.alpha": 0.9, "model.label_propagation.steps": 5},
        ),
    ),
    "mlp": Design("MLP", {"model.architecture": "mlp"}, few=_SMALL | {"train.weight_decay": 5e-4}, many=_MIDDLE),
    "gcn": Design(
        "GCN",
        {"model.architecture": "pyg_gcn"},
        few=_SMALL
        | {
            "model.hidden": 16,
            "model.feature_scale": "row",
            "train.weight_decay": 5e-4,
            "train.epochs": 200,
            **CONSTANT,
        },
        many=_MIDDLE,
    ),
    "jknet": Design(
        "JKNet",
        {"model.architecture": "jknet"},
        few=_SMALL | {"model.hidden": 32, "model.layers": 6, "model.jknet.mode": "max", "train.lr": 0.005, **_ALL_5E4},
        many=_MIDDLE,
        more=(_WIDE, _SMALL | {"model.layers": 4, "model.jknet.mode": "max", **_ALL_5E4}),
    ),
    "gcnii": Design(
        "GCNII",
        _of("gcnii"),
        few={
            "model.hidden": 64,
            "model.layers": 64,
            "model.norm": "none",
            "model.residual": "none",
            "model.dropout": 0.6,
            "model.input_dropout": 0.6,
            "model.appnp.teleport": 0.1,
            "model.gcnii.identity_decay": 0.5,
            "train.lr": 0.01,
            "train.weight_decay": 5e-4,
            "train.weight_decay_layers": 0.01,
            "model.feature_scale": "row",
            "train.epochs": 1500,
            "train.patience": 100,
            **CONSTANT,
        },
        many={
            "model.hidden": 256,
            "model.layers": 16,
            "model.norm": "batch",
            "model.residual": "none",
            "model.dropout": 0.1,
            "model.input_dropout": 0.1,
            "model.appnp.teleport": 0.5,
            "model.gcnii.identity_decay": 1.0,
            "train.lr": 0.001,
            "train.weight_decay": 0.0,
            "train.weight_decay_layers": 0.0,
        },
        more=(
            _WIDE | {"model.layers": 8, "model.residual": "none", "model.appnp.teleport": 0.2},
            _MIDDLE
            | {
                "model.layers": 4,
                "model.norm": "layer",
                "model.residual": "none",
                "model.appnp.teleport": 0.5,
                "train.lr": 0.003,
            },
        ),
        by_data={
            "citeseer": {
                "model.hidden": 256,
                "model.layers": 32,
                "model.dropout": 0.7,
                "model.input_dropout": 0.7,
                "model.gcnii.identity_decay": 0.6,
            },
            "pubmed": {
                "model.hidden": 256,
                "model.layers": 16,
                "model.dropout": 0.5,
                "model.input_dropout": 0.5,
                "model.gcnii.identity_decay": 0.4,
                "train.weight_decay_layers": 5e-4,
            },
        },
    ),
    "appnp": Design(
        "APPNP",
        _of("appnp"),
        few=_SMALL
        | {
            "model.appnp.hops": 10,
            "model.appnp.teleport": 0.1,
            "model.feature_scale": "row",
            "train.weight_decay": 0.005,
            "train.epochs": 1000,
            **CONSTANT,
        },
        many=_MIDDLE | {"model.appnp.hops": 10, "model.appnp.teleport": 0.2},
        more=(
            _WIDE | {"model.appnp.hops": 5, "model.appnp.teleport": 0.5},
            _SMALL | {"model.appnp.hops": 10, "model.appnp.teleport": 0.2, **_ALL_5E4},
        ),
    ),
    "dagnn": Design(
        "DAGNN",
        _of("dagnn"),
        few=_SMALL
        | {
            "model.appnp.hops": 10,
            "model.dropout": 0.8,
            "model.input_dropout": 0.8,
            "model.feature_scale": "row",
            "train.weight_decay": 0.005,
            "train.weight_decay_layers": 0.005,
            "train.epochs": 1000,
            **CONSTANT,
        },
        many=_MIDDLE | {"model.appnp.hops": 16, "model.norm": "none", "model.dropout": 0.2, "train.lr": 0.005},
        more=(_WIDE | {"model.appnp.hops": 5}, _SMALL | {"model.appnp.hops": 10, **_ALL_5E4}),
        by_data={
            "citeseer": {
                "model.dropout": 0.5,
                "model.input_dropout": 0.5,
                "train.weight_decay": 0.02,
                "train.weight_decay_layers": 0.02,
            },
            "pubmed": {"model.appnp.hops": 20},
        },
    ),
    "sign": Design(
        "SIGN",
        {"model.architecture": "sign"},
        few=_SMALL | {"model.appnp.hops": 3, **_ALL_5E4},
        many=_MIDDLE | {"model.hidden": 512, "model.appnp.hops": 5, "train.lr": 0.001},
        more=(_WIDE | {"model.appnp.hops": 2}, _MIDDLE | {"model.appnp.hops": 3, "model.layers": 2}),
    ),
    "unimp": Design(
        "UniMP",
        {"model.architecture": "unimp"},
        few=_SMALL | {"model.attention.heads": 2, "train.lr": 0.005, "train.alpha": 0.6, **_ALL_5E4},
        many={
            "model.hidden": 256,
            "model.layers": 3,
            "model.attention.heads": 2,
            "model.norm": "layer",
            "model.dropout": 0.3,
            "model.input_dropout": 0.0,
            "train.lr": 0.001,
            "train.alpha": 0.375,
            **_ALL_5E4,
        },
        more=(
            _WIDE | {"model.attention.heads": 4},
            _MIDDLE | {"model.norm": "layer", "model.attention.heads": 4, "train.lr": 0.003},
        ),
    ),
    "deeper_gcn": Design(
        "DeeperGCN",
        {"model.architecture": "deeper_gcn"},
        few=_SMALL | {"model.layers": 4, "model.norm": "layer", "train.lr": 0.005, **_ALL_5E4},
        many={
            "model.hidden": 128,
            "model.layers": 14,
            "model.norm": "batch",
            "model.dropout": 0.5,
            "model.input_dropout": 0.0,
            "train.lr": 0.01,
        },
        more=(
            _WIDE | {"model.hidden": 256},
            _MIDDLE | {"model.layers": 7, "model.norm": "layer", "model.hidden": 128, "train.lr": 0.003},
        ),
        by_data={"ogbn-arxiv": {"model.layers": 28}},
    ),
    "gaan": Design(
        "GaAN",
        {"model.architecture": "gaan"},
        few=_SMALL | {"model.attention.heads": 8, "train.lr": 0.005, **_ALL_5E4},
        many=_MIDDLE | {"model.attention.heads": 8, "model.dropout": 0.35},
        more=(
            _WIDE | {"model.attention.heads": 4},
            _MIDDLE | {"model.attention.heads": 4, "model.norm": "layer", "train.lr": 0.003},
        ),
    ),
    "gcn_lpa": Design(
        "GCN-LPA",
        {"model.architecture": "gcn_lpa"},
        few=_SMALL
        | {
            "model.hidden": 32,
            "model.layers": 5,
            "model.dropout": 0.2,
            "model.input_dropout": 0.2,
            "train.lr": 0.05,
            "model.gcn_lpa.loss_weight": 10.0,
            "train.weight_decay": 1e-4,
            "train.weight_decay_layers": 1e-4,
        },
        many=_MIDDLE | {"model.gcn_lpa.loss_weight": 1.0},
        more=(
            _WIDE | {"model.gcn_lpa.loss_weight": 1.0},
            _SMALL | {"model.gcn_lpa.loss_weight": 1.0, "train.weight_decay": 5e-4},
        ),
    ),
    "label_highway": Design(
        "Highway GCN",
        {"model.architecture": "label_highway"},
        few=_SMALL | {"train.weight_decay": 5e-4, "train.alpha": 0.7},
        many=_MIDDLE,
        more=(_WIDE, _SMALL | {"train.lr": 0.003, "train.weight_decay": 0.05, "train.alpha": 0.7}),
    ),
    "boosted_trees": Design(
        "Boosted trees",
        {"model.architecture": "boosted_trees"},
        few={
            "model.boosted_trees.trees": 100,
            "model.boosted_trees.learning_rate": 0.1,
            "model.boosted_trees.leaves": 8,
        },
        many={
            "model.boosted_trees.trees": 100,
            "model.boosted_trees.learning_rate": 0.1,
            "model.boosted_trees.leaves": 31,
        },
        more=(
            {
                "model.boosted_trees.trees": 200,
                "model.boosted_trees.learning_rate": 0.05,
                "model.boosted_trees.leaves": 16,
            },
            {
                "model.boosted_trees.trees": 100,
                "model.boosted_trees.learning_rate": 0.1,
                "model.boosted_trees.leaves": 63,
            },
        ),
    ),
    "metapath_labels": Design(
        "Metapath labels",
        {"model.architecture": "metapath_labels", "data.self_loops": False},
        few=_TYPED_TRIED[0],
        many={
            "model.hidden": 512,
            "model.layers": 2,
            "model.norm": "batch",
            "model.dropout": 0.5,
            "model.input_dropout": 0.1,
            "train.lr": 0.001,
        },
        more=_TYPED_TRIED[1:],
    ),
    "metapath2vec": Design(
        "MetaPath2Vec",
        {"model.architecture": "mlp", "data.features": "metapath2vec"},
        few={
            "model.hidden": 64,
            "model.layers": 1,
            "model.dropout": 0.0,
            "model.input_dropout": 0.0,
            "train.lr": 0.01,
            "train.weight_decay": 5e-4,
        },
        many=_MIDDLE,
        more=(_SMALL | {"train.weight_decay": 5e-4}, _WIDE),
        is_typed=True,
    ),
    "rgcn": Design(
        "RGCN",
        _typed(_of("rgcn")),
        few={
            "model.hidden": 64,
            "model.layers": 2,
            "model.norm": "none",
            "model.residual": "none",
            "model.dropout": 0.5,
            "model.input_dropout": 0.0,
            "train.lr": 0.01,
            "train.weight_decay": 5e-4,
            "train.weight_decay_layers": 5e-4,
        },
        many={
            "model.hidden": 64,
            "model.layers": 2,
            "model.norm": "none",
            "model.residual": "none",
            "model.dropout": 0.5,
            "model.input_dropout": 0.0,
            "train.lr": 0.01,
        },
        more=tuple({**values, "model.residual": "none"} for values in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
    "hgt": Design(
        "HGT",
        _typed(_of("hgt")),
        few={**_TYPED_TRIED[0], "model.attention.heads": 8, "model.residual": "none"},
        many={
            "model.hidden": 512,
            "model.layers": 4,
            "model.attention.heads": 8,
            "model.norm": "layer",
            "model.residual": "none",
            "model.dropout": 0.2,
            "model.input_dropout": 0.0,
            "train.lr": 0.001,
        },
        more=tuple({**values, "model.attention.heads": 8, "model.residual": "none"} for values in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
    "r_gsn": Design(
        "R-GSN",
        _typed({"model.architecture": "r_gsn"}),
        few=_TYPED_TRIED[0],
        many={
            "model.hidden": 64,
            "model.layers": 2,
            "model.norm": "layer",
            "model.dropout": 0.5,
            "model.input_dropout": 0.0,
            "train.lr": 0.004,
        },
        more=_TYPED_TRIED[1:],
        is_typed=True,
    ),
    "hgconv": Design(
        "HGConv",
        _typed({"model.architecture": "hgconv"}),
        few={**_TYPED_TRIED[0], "model.attention.heads": 8},
        many={
            "model.hidden": 256,
            "model.layers": 2,
            "model.attention.heads": 8,
            "model.norm": "none",
            "model.dropout": 0.5,
            "model.input_dropout": 0.0,
            "train.lr": 0.001,
        },
        more=tuple({**values, "model.attention.heads": 8} for values in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
    "rshn": Design(
        "RSHN",
        _typed({"model.architecture": "rshn"}),
        few={
            "model.hidden": 16,
            "model.layers": 2,
            "model.norm": "none",
            "model.dropout": 0.6,
            "model.input_dropout": 0.0,
            "train.lr": 0.01,
            **_ALL_5E4,
        },
        many=_TYPED_TRIED[0],
        more=_TYPED_TRIED[1:],
        is_typed=True,
    ),
    "hetsann": Design(
        "HetSANN",
        _typed({"model.architecture": "hetsann"}),
        few={
            "model.hidden": 64,
            "model.layers": 3,
            "model.attention.heads": 8,
            "model.norm": "none",
            "model.dropout": 0.5,
            "model.input_dropout": 0.0,
            "train.lr": 0.005,
            **_ALL_5E4,
        },
        many={**_TYPED_TRIED[0], "model.attention.heads": 8},
        more=tuple({**values, "model.attention.heads": 8} for values in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
    "r_hgnn": Design(
        "R-HGNN",
        _typed({"model.architecture": "r_hgnn"}),
        few={**_TYPED_TRIED[0], "model.attention.heads": 8},
        many={
            "model.hidden": 512,
            "model.layers": 2,
            "model.attention.heads": 8,
            "model.norm": "none",
            "model.dropout": 0.5,
            "model.input_dropout": 0.0,
            "train.lr": 0.001,
        },
        more=tuple({**values, "model.attention.heads": 8} for values in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
}
