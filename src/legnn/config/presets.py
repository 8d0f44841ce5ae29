"""Presets: functions that choose the settings the user left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from legnn.config.model import ModelSettings


@dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """Facts of a graph that decide which settings suit it."""

    num_train: int
    num_classes: int
    counts_features: bool
    """Whether features are like word counts: none negative, most of them zero."""
    has_label_edges: bool
    """Whether the data come with label–label edges."""


Preset = Callable[[GraphFacts, Mapping[str, Any]], dict[str, Any]]
"""Returns values by the settings' names, from facts of the graph and what the user gave. What was given wins."""

FEW_LABELS = 50
"""Below this many training nodes a class, a small model with strong regularization does better than the paper's."""


def recommended(facts: GraphFacts, given: Mapping[str, Any]) -> dict[str, Any]:
    """By the number of labels: small and strongly regularized with few, the paper's size with many.

    With many: the paper's three layers with batch norm and residuals. With few those overfit, and half of the labels
    are too many to give away: two narrow layers, no norm, a strong penalty on the projection of the features, and a
    larger part of the labels predicted. The values come from comparisons on Cora, CiteSeer and PubMed (few) and on
    debian (many); docs/results.md says how far they can be trusted.
    """
    few = facts.num_train / max(facts.num_classes, 1) < FEW_LABELS
    return {
        "hidden": 64 if few else 256,
        "layers": 2 if few else 3,
        "residual": "none" if few else _residual(given),
        "norm": "none" if few else "batch",
        "dropout": 0.5,
        "input_dropout": 0.5 if few else 0.1,
        "label_edges": facts.has_label_edges and given.get("labels", ModelSettings.labels) == "enhanced",
        # without it, a label travels one hop less than with concat or addition
        "label_at_input": True,
        # Word counts keep their zeros. Rows of sum 1 are so small that the projection has to grow a hundredfold to
        # make a difference; with few labels it fits noise.
        "scale": "entries" if facts.counts_features else "standard",
        "epochs": 300 if few else 500,
        "lr": 0.003 if few else 0.01,
        "weight_decay": 0.05 if few else 0.0,
        "alpha": 0.7 if few else 0.5,
        "fanout": _fanout(given.get("layers", 2 if few else 3)),
    }


# section 5 and the appendix: the settings of LEGNN on each data set
_NAMES = ("hidden", "norm", "epochs", "patience", "dropout", "lr", "delta", "threshold", "weight")
_PAPER: dict[str, tuple[Any, ...]] = {
    "ogbn-arxiv": (540, "batch", 2000, 200, 0.6, 0.002, 10.0, 0.7, 0.5),
    "ogbn-mag": (512, "none", 500, 50, 0.3, 0.001, 5.0, 0.6, 0.1),
    "oag-venue": (256, "none", 1000, 100, 0.4, 0.001, 30.0, 0.9, 0.05),
}


def paper(facts: GraphFacts, given: Mapping[str, Any]) -> dict[str, Any]:
    """The paper's equations, and the settings of LEGNN in its experiments.

    `A'` is normalized as a whole, labels enter at label nodes alone, features stay as they are. Widths, epochs,
    dropout, learning rate and the parameters of AS-Train are those of the paper for ogbn-arxiv, ogbn-mag and oag-venue,
    and those of ogbn-arxiv for any other graph. A lifted backbone keeps `normalize = relation`: it has no joint form.
    """
    source, backbone = given.get("source"), given.get("backbone", ModelSettings.backbone)
    chosen = dict(zip(_NAMES, _PAPER[source if source in _PAPER else "ogbn-arxiv"], strict=True))
    if backbone == "sage" and chosen["dropout"] == 0.6:
        chosen["dropout"] = 0.5
    return {
        **chosen,
        "normalize": "joint" if backbone in ("gcn", "sage", "gat") else "relation",
        "layers": 3,
        "residual": _residual(given),
        "input_dropout": 0.0,
        "label_edges": False,
        "label_at_input": False,
        "scale": "none",
        "weight_decay": 0.0,
        "alpha": 0.5,
        "fanout": _fanout(given.get("layers", 3)),
    }


def _residual(given: Mapping[str, Any]) -> str:
    # GraphSAGE's root weight is a linear residual already
    return "identity" if given.get("backbone") == "sage" else "linear"


def _fanout(layers: int) -> str:
    # the paper's 15, 10, 5 for its three layers, from the input side
    return ",".join(map(str, [15, 10, *[5] * layers][:layers]))


PRESETS: dict[str, Preset] = {"recommended": recommended, "paper": paper}
