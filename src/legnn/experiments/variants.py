"""The variants that the paper compares, as data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from legnn.config import GraphFacts
from legnn.config.designs import DESIGNS
from legnn.config.model import ModelSettings
from legnn.data import Statistics, statistics
from legnn.datasets import load
from legnn.experiments.experiment import Variant
from legnn.experiments.paper_values import CROSS_LABEL_EDGES, DATA_SETS

VANILLA = Variant("vanilla", {"model.labels": "vanilla"})
LEGNN = Variant("LEGNN", {"model.labels": "enhanced"})
METHODS = (
    VANILLA,
    Variant("concat", {"model.labels": "concat"}),
    Variant("addition", {"model.labels": "addition"}),
    LEGNN,
)
"""The four ways of using labels."""

AS_TRAIN = Variant("LEGNN + AS-Train", {"model.labels": "enhanced", "self_training.as_train": True})

ABLATION = (
    LEGNN,
    AS_TRAIN,
    Variant("without TC", {**AS_TRAIN.settings, "self_training.use_tc": False}),
    Variant("without EC", {**AS_TRAIN.settings, "self_training.use_ec": False}),
    Variant("without both", {**AS_TRAIN.settings, "self_training.use_tc": False, "self_training.use_ec": False}),
)

SELECTION = (
    VANILLA,
    Variant("without selection", {"model.labels": "enhanced", "train.selection": False}),
    Variant("with selection", LEGNN.settings),
)

LABEL_FEATURES = (
    Variant("one-hot", {**LEGNN.settings, "model.label_features": "one-hot"}),
    Variant("class mean", {**LEGNN.settings, "model.label_features": "class-mean"}),
)

# the paper's analysis has t = 0.9 and, from its epochs 91 and 3, δ = 10
_STRICT = {**AS_TRAIN.settings, "self_training.pseudo_label_threshold": 0.9, "self_training.delta": 10.0}
PSEUDO_LABELS = (Variant("with TC", _STRICT), Variant("without TC", {**_STRICT, "self_training.use_tc": False}))

SENSITIVITY = (
    *(Variant(f"α = {x:g}", {**LEGNN.settings, "train.alpha": x}, "α", x) for x in (0.1, 0.3, 0.5, 0.7, 0.9)),
    *(
        Variant(f"δ = {x:g}", {**AS_TRAIN.settings, "self_training.delta": x}, "δ", x)
        for x in (1.0, 5.0, 10.0, 50.0, 100.0)
    ),
    *(
        Variant(f"λ = {x:g}", {**AS_TRAIN.settings, "self_training.pseudo_label_weight": x}, "λ", x)
        for x in (0.05, 0.1, 0.3, 0.5, 1.0)
    ),
    *(Variant(f"D = {x}", {**LEGNN.settings, "model.hidden": x}, "D", x) for x in (60, 120, 240, 480, 960)),
)

PRECISION = tuple(
    Variant(f"{variant.name}, {name}", {**variant.settings, "train.precision": name}, variant.name)
    for variant in (*METHODS, AS_TRAIN)
    for name in ("tf32", "bf16")
)
"""Every way of using labels, in TF32 and in bf16."""

_MINI = {"train.batch": 4096, "train.fanout": "20"}
BATCHES = tuple(
    Variant(f"{variant.name}, {name}", {**variant.settings, **settings})
    for variant in (LEGNN, AS_TRAIN)
    for name, settings in (("full batch", {"train.batch": "full"}), ("batches of 4,096", _MINI))
)


def other_model(name: str, architecture: str) -> Variant:
    """A model that has no backbone; it names one, so that it is trained once for all."""
    return Variant(name, {"model.architecture": architecture, "model.backbone": ModelSettings.backbone})


def designs(source: str) -> tuple[Variant, ...]:
    """The designs of other papers, those for several node types where there are several, and ours."""
    facts = _facts(source)
    few, has_types = facts.has_few_labels, facts.num_types > 1

    def of_design(name: str, title: str | None = None, settings: Mapping[str, Any] = MappingProxyType({})) -> Variant:
        design = DESIGNS[name]
        model = {"model.backbone": ModelSettings.backbone, **design.model, **settings}
        return Variant(title or design.title, model, candidates=design.candidates(has_few_labels=few))

    smooth = {"model.postprocess": "correct_and_smooth"}
    backbones = ["gcnii", "appnp", "dagnn", *(["rgcn", "hgt"] if has_types else [])]
    return (
        *(of_design(name) for name, design in DESIGNS.items() if has_types or not design.is_typed),
        of_design("mlp", "MLP + C&S", smooth),
        of_design("gcn", "GCN + C&S", smooth),
        LEGNN,
        AS_TRAIN,
        Variant(
            "LEGNN + fixed threshold",
            {**AS_TRAIN.settings, "self_training.use_tc": False, "self_training.use_ec": False},
        ),
        Variant("LEGNN + top k", {**AS_TRAIN.settings, "self_training.pseudo_label_rule": "top-k"}),
        Variant("LEGNN + agreement", {**AS_TRAIN.settings, "self_training.pseudo_label_rule": "agreement"}),
        *(of_design(name, f"LEGNN ({DESIGNS[name].title})", LEGNN.settings) for name in backbones),
    )


@lru_cache(maxsize=64)
def _facts(source: str) -> GraphFacts:
    return load(source).facts()


def synthetic(source: str) -> tuple[Variant, ...]:
    """Every method on every synthetic graph."""
    return tuple(
        Variant(
            f"{method.name}, S = {edges:,}", {**method.settings, "data.cross_label_edges": edges}, method.name, edges
        )
        for method in METHODS
        for edges in cross_label_edges(source)
    )


def cross_label_edges(source: str) -> tuple[int, ...]:
    """The paper's ten values of `S`; on another graph, the same fractions of its edges."""
    if source == "ogbn-arxiv":
        return tuple(CROSS_LABEL_EDGES)
    fraction = graph_statistics(source).edges / DATA_SETS["ogbn-arxiv"].edges
    return tuple(max(round(edges * fraction), 1) for edges in CROSS_LABEL_EDGES)


@lru_cache(maxsize=64)
def graph_statistics(source: str, cross_edges: int = 0) -> Statistics:
    """Size, split and homophily of a data set."""
    return statistics(load(source, cross_label_edges=cross_edges))
