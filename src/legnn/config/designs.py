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
    """Its authors' settings for a citation graph with few labels, or what comes closest."""
    many: Values = MappingProxyType({})
    """Its authors' settings for a large graph with many labels, or what comes closest."""
    more: Sequence[Values] = ()
    """Settings that comparisons try beside those two."""
    by_data: Mapping[str, Values] = MappingProxyType({})
    """Where its authors chose otherwise for a data set."""
    is_typed: bool = False
    """Whether it needs several node types."""

    def tried(self, *, has_few_labels: bool) -> Sequence[Values]:
        """The settings that comparisons try, the most promising first; none for those that all models share."""
        if not self.more:
            return ()
        return (self.few, self.many, *self.more) if has_few_labels else (self.many, *self.more, self.few)


def _of(backbone: str) -> Values:
    return {"backbone": backbone, "labels": "vanilla"}


def _typed(**model: Any) -> Values:
    # a root matrix or a residual has the part of self-loops, which would make a relation for every type
    return {**model, "self_loops": False}


CONSTANT = {"cosine_steps": 1_000_000}
"""A learning rate that does not fall: training goes on as long as validation improves within `patience` epochs."""
_SMALL = {"hidden": 64, "layers": 2, "norm": "none", "dropout": 0.5, "input_dropout": 0.5, "lr": 0.01}
_ALL_5E4 = {"weight_decay": 5e-4, "layer_decay": 5e-4}
_WIDE = {"hidden": 512, "layers": 2, "norm": "layer", "dropout": 0.3, "input_dropout": 0.0, "lr": 0.001} | _ALL_5E4
_MIDDLE = {"hidden": 256, "layers": 3, "norm": "batch", "dropout": 0.5, "input_dropout": 0.1, "lr": 0.01}
_MIDDLE |= {"weight_decay": 0.0, "layer_decay": 0.0}
_TYPED_TRIED = (
    {"hidden": 64, "layers": 2, "norm": "none", "dropout": 0.5, "input_dropout": 0.2, "lr": 0.005, **_ALL_5E4},
    {"hidden": 256, "layers": 2, "norm": "layer", "dropout": 0.5, "input_dropout": 0.0, "lr": 0.001},
    {"hidden": 256, "layers": 3, "norm": "layer", "dropout": 0.3, "input_dropout": 0.1, "lr": 0.003},
)

DESIGNS: dict[str, Design] = {
    "label_propagation": Design(
        "Label propagation",
        {"architecture": "label_propagation"},
        few={"propagation_alpha": 0.9},
        many={"propagation_alpha": 0.99},
        more=({"propagation_alpha": 0.5}, {"propagation_alpha": 0.9, "propagation_steps": 5}),
    ),
    "mlp": Design("MLP", {"architecture": "mlp"}, few=_SMALL | {"weight_decay": 5e-4}, many=_MIDDLE),
    "gcn": Design(
        "GCN",
        {"architecture": "pyg_gcn"},
        few=_SMALL | {"hidden": 16, "scale": "row", "weight_decay": 5e-4, "epochs": 200, **CONSTANT},
        many=_MIDDLE,
    ),
    "jknet": Design(
        "JKNet",
        {"architecture": "jknet"},
        few=_SMALL | {"hidden": 32, "layers": 6, "jump": "max", "lr": 0.005, **_ALL_5E4},
        many=_MIDDLE,
        more=(_WIDE, _SMALL | {"layers": 4, "jump": "max", **_ALL_5E4}),
    ),
    "gcnii": Design(
        "GCNII",
        _of("gcnii"),
        few={"hidden": 64, "layers": 64, "norm": "none", "residual": "none", "dropout": 0.6, "input_dropout": 0.6,
             "restart": 0.1, "identity_decay": 0.5, "lr": 0.01, "weight_decay": 5e-4, "layer_decay": 0.01,
             "scale": "row", "epochs": 1500, "patience": 100, **CONSTANT},
        many={"hidden": 256, "layers": 16, "norm": "batch", "residual": "none", "dropout": 0.1, "input_dropout": 0.1,
              "restart": 0.5, "identity_decay": 1.0, "lr": 0.001, "weight_decay": 0.0, "layer_decay": 0.0},
        more=(
            _WIDE | {"layers": 8, "residual": "none", "restart": 0.2},
            _MIDDLE | {"layers": 4, "norm": "layer", "residual": "none", "restart": 0.5, "lr": 0.003},
        ),
        by_data={
            "citeseer": {"hidden": 256, "layers": 32, "dropout": 0.7, "input_dropout": 0.7, "identity_decay": 0.6},
            "pubmed": {"hidden": 256, "layers": 16, "dropout": 0.5, "input_dropout": 0.5, "identity_decay": 0.4,
                       "layer_decay": 5e-4},
        },
    ),
    "appnp": Design(
        "APPNP",
        _of("appnp"),
        few=_SMALL | {"hops": 10, "restart": 0.1, "scale": "row", "weight_decay": 0.005, "epochs": 1000, **CONSTANT},
        many=_MIDDLE | {"hops": 10, "restart": 0.2},
        more=(_WIDE | {"hops": 5, "restart": 0.5}, _SMALL | {"hops": 10, "restart": 0.2, **_ALL_5E4}),
    ),
    "dagnn": Design(
        "DAGNN",
        _of("dagnn"),
        few=_SMALL | {"hops": 10, "dropout": 0.8, "input_dropout": 0.8, "scale": "row", "weight_decay": 0.005,
                      "layer_decay": 0.005, "epochs": 1000, **CONSTANT},
        many=_MIDDLE | {"hops": 16, "norm": "none", "dropout": 0.2, "lr": 0.005},
        more=(_WIDE | {"hops": 5}, _SMALL | {"hops": 10, **_ALL_5E4}),
        by_data={
            "citeseer": {"dropout": 0.5, "input_dropout": 0.5, "weight_decay": 0.02, "layer_decay": 0.02},
            "pubmed": {"hops": 20},
        },
    ),
    "sign": Design(
        "SIGN",
        {"architecture": "sign"},
        few=_SMALL | {"hops": 3, **_ALL_5E4},
        many=_MIDDLE | {"hidden": 512, "hops": 5, "lr": 0.001},
        more=(_WIDE | {"hops": 2}, _MIDDLE | {"hops": 3, "layers": 2}),
    ),
    "unimp": Design(
        "UniMP",
        {"architecture": "unimp"},
        few=_SMALL | {"heads": 2, "lr": 0.005, "alpha": 0.6, **_ALL_5E4},
        many={"hidden": 256, "layers": 3, "heads": 2, "norm": "layer", "dropout": 0.3, "input_dropout": 0.0,
              "lr": 0.001, "alpha": 0.375, **_ALL_5E4},
        more=(_WIDE | {"heads": 4}, _MIDDLE | {"norm": "layer", "heads": 4, "lr": 0.003}),
    ),
    "deeper_gcn": Design(
        "DeeperGCN",
        {"architecture": "deeper_gcn"},
        few=_SMALL | {"layers": 4, "norm": "layer", "lr": 0.005, **_ALL_5E4},
        many={"hidden": 128, "layers": 14, "norm": "batch", "dropout": 0.5, "input_dropout": 0.0, "lr": 0.01},
        more=(_WIDE | {"hidden": 256}, _MIDDLE | {"layers": 7, "norm": "layer", "hidden": 128, "lr": 0.003}),
        by_data={"ogbn-arxiv": {"layers": 28}},
    ),
    "gaan": Design(
        "GaAN",
        {"architecture": "gaan"},
        few=_SMALL | {"heads": 8, "lr": 0.005, **_ALL_5E4},
        many=_MIDDLE | {"heads": 8, "dropout": 0.35},
        more=(_WIDE | {"heads": 4}, _MIDDLE | {"heads": 4, "norm": "layer", "lr": 0.003}),
    ),
    "gcn_lpa": Design(
        "GCN-LPA",
        {"architecture": "gcn_lpa"},
        few=_SMALL | {"hidden": 32, "layers": 5, "dropout": 0.2, "input_dropout": 0.2, "lr": 0.05, "lpa_weight": 10.0,
                      "weight_decay": 1e-4, "layer_decay": 1e-4},
        many=_MIDDLE | {"lpa_weight": 1.0},
        more=(_WIDE | {"lpa_weight": 1.0}, _SMALL | {"lpa_weight": 1.0, "weight_decay": 5e-4}),
    ),
    "label_highway": Design(
        "Highway GCN",
        {"architecture": "label_highway"},
        few=_SMALL | {"weight_decay": 5e-4, "alpha": 0.7},
        many=_MIDDLE,
        more=(_WIDE, _SMALL | {"lr": 0.003, "weight_decay": 0.05, "alpha": 0.7}),
    ),
    "boosted_trees": Design(
        "Boosted trees",
        {"architecture": "boosted_trees"},
        few={"trees": 100, "tree_rate": 0.1, "tree_leaves": 8},
        many={"trees": 100, "tree_rate": 0.1, "tree_leaves": 31},
        more=(
            {"trees": 200, "tree_rate": 0.05, "tree_leaves": 16},
            {"trees": 100, "tree_rate": 0.1, "tree_leaves": 63},
        ),
    ),
    "metapath_labels": Design(
        "Metapath labels",
        {"architecture": "metapath_labels", "self_loops": False},
        few=_TYPED_TRIED[0],
        many={"hidden": 512, "layers": 2, "norm": "batch", "dropout": 0.5, "input_dropout": 0.1, "lr": 0.001},
        more=_TYPED_TRIED[1:],
    ),
    "metapath2vec": Design(
        "MetaPath2Vec",
        {"architecture": "mlp", "features": "metapath2vec"},
        few={"hidden": 64, "layers": 1, "dropout": 0.0, "input_dropout": 0.0, "lr": 0.01, "weight_decay": 5e-4},
        many=_MIDDLE,
        more=(_SMALL | {"weight_decay": 5e-4}, _WIDE),
        is_typed=True,
    ),
    "rgcn": Design(
        "RGCN",
        _typed(**_of("rgcn")),
        few={"hidden": 64, "layers": 2, "norm": "none", "residual": "none", "dropout": 0.5, "input_dropout": 0.0,
             "lr": 0.01, "weight_decay": 5e-4, "layer_decay": 5e-4},
        many={"hidden": 64, "layers": 2, "norm": "none", "residual": "none", "dropout": 0.5, "input_dropout": 0.0,
              "lr": 0.01},
        more=tuple({**one, "residual": "none"} for one in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
    "hgt": Design(
        "HGT",
        _typed(**_of("hgt")),
        few={**_TYPED_TRIED[0], "heads": 8, "residual": "none"},
        many={"hidden": 512, "layers": 4, "heads": 8, "norm": "layer", "residual": "none", "dropout": 0.2,
              "input_dropout": 0.0, "lr": 0.001},
        more=tuple({**one, "heads": 8, "residual": "none"} for one in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
    "r_gsn": Design(
        "R-GSN",
        _typed(architecture="r_gsn"),
        few=_TYPED_TRIED[0],
        many={"hidden": 64, "layers": 2, "norm": "layer", "dropout": 0.5, "input_dropout": 0.0, "lr": 0.004},
        more=_TYPED_TRIED[1:],
        is_typed=True,
    ),
    "hgconv": Design(
        "HGConv",
        _typed(architecture="hgconv"),
        few={**_TYPED_TRIED[0], "heads": 8},
        many={"hidden": 256, "layers": 2, "heads": 8, "norm": "none", "dropout": 0.5, "input_dropout": 0.0,
              "lr": 0.001},
        more=tuple({**one, "heads": 8} for one in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
    "rshn": Design(
        "RSHN",
        _typed(architecture="rshn"),
        few={"hidden": 16, "layers": 2, "norm": "none", "dropout": 0.6, "input_dropout": 0.0, "lr": 0.01, **_ALL_5E4},
        many=_TYPED_TRIED[0],
        more=_TYPED_TRIED[1:],
        is_typed=True,
    ),
    "hetsann": Design(
        "HetSANN",
        _typed(architecture="hetsann"),
        few={"hidden": 64, "layers": 3, "heads": 8, "norm": "none", "dropout": 0.5, "input_dropout": 0.0,
             "lr": 0.005, **_ALL_5E4},
        many={**_TYPED_TRIED[0], "heads": 8},
        more=tuple({**one, "heads": 8} for one in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
    "r_hgnn": Design(
        "R-HGNN",
        _typed(architecture="r_hgnn"),
        few={**_TYPED_TRIED[0], "heads": 8},
        many={"hidden": 512, "layers": 2, "heads": 8, "norm": "none", "dropout": 0.5, "input_dropout": 0.0,
              "lr": 0.001},
        more=tuple({**one, "heads": 8} for one in _TYPED_TRIED[1:]),
        is_typed=True,
    ),
}  # fmt: skip
