"""Presets: each chooses the settings the user left open."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from legnn.config.candidates import CANDIDATES
from legnn.config.designs import DESIGNS, Design
from legnn.config.facts import GraphFacts
from legnn.config.model import AppnpSettings, AttentionSettings, ModelSettings, traits
from legnn.config.paper_tables import DROPOUT_AND_LR, FANOUT, HYPERPARAMETERS, LAYERS
from legnn.config.portfolio import learned_portfolio


class Preset(ABC):
    """Chooses values by the settings' names, from what the user gave, which wins. Its docstring is shown as help."""

    model: Mapping[str, Any] = MappingProxyType({})
    """Settings that make it another model than the default, such as its backbone, where the user gave nothing else."""

    def data(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns settings of the data, which are needed before the graph is known."""
        return {}

    @abstractmethod
    def choose(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns all other settings, for a graph with these facts."""

    def explain(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> str | None:
        """Returns a sentence that says what was chosen and why; None where its name says it all."""
        return None


class Simple(Preset):
    """By the number of labels: small and strongly regularized with few, the paper's size with many.

    With many: the paper's three layers with batch norm and residuals. With few those overfit, and half of the labels
    are too many to give away: two narrow layers, no norm, a strong penalty on the projection of the features, and a
    larger part of the labels predicted. Comparisons of methods start from it: it suits no method in particular.
    """

    def choose(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """By the number of training nodes a class, and by the kind of features."""
        few = facts.has_few_labels
        chosen = {
            "model.hidden": 64 if few else 256,
            "model.layers": 2 if few else 3,
            "model.residual": "none" if few else _residual(fixed),
            "model.norm": "none" if few else "batch",
            "model.dropout": 0.5,
            "model.input_dropout": 0.5 if few else 0.1,
            "model.label_edges": facts.has_label_edges
            and fixed.get("model.labels", ModelSettings.labels) == "enhanced",
            # without it, a label travels one hop less than with concat or addition
            "model.label_at_input": True,
            # Word counts keep their zeros. Rows of sum 1 are so small that the projection has to grow a hundredfold to
            # make a difference; with few labels it fits noise.
            "model.feature_scale": "entries" if facts.counts_features else "standard",
            "train.epochs": 300 if few else 500,
            "train.lr": 0.003 if few else 0.01,
            "train.weight_decay": 0.05 if few else 0.0,
            "train.alpha": 0.7 if few else 0.5,
        }
        return chosen | {"train.fanout": _fanout(chosen, fixed)}


class Recommended(Simple):
    """The settings that did best over all graphs; graphs with several node types have their own.

    The candidate of `config/candidates.py` that was least below the best on validation nodes of the graphs that
    `benchmarks.portfolio` learned from. With a backbone, an architecture or a label usage given, the best of the
    candidates that have it.
    """

    def choose(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the best candidate."""
        name = self._best(facts, fixed)
        if name is None:
            return super().choose(facts, fixed)
        best = CANDIDATES[name].values
        values = {key: value for key, value in best.items() if not key.startswith("data.")}
        if _misses(name, fixed):
            # self-training was good for that model, which is not the one that is wanted
            values.pop("self_training.as_train", None)
        if (
            fixed.get("model.backbone", values["model.backbone"]) != values["model.backbone"]
            and values["model.residual"] != "none"
        ):
            values["model.residual"] = _residual(fixed)
        # of another width, as many heads as divide it
        values["model.attention.heads"] = _heads(values, fixed)
        return super().choose(facts, {**values, **fixed}) | {"self_training.as_train": False, **values}

    def explain(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> str | None:
        """Names the candidate and the facts that it was chosen by."""
        name = self._best(facts, fixed)
        graphs = "graphs with several node types" if facts.num_types > 1 else "all graphs with one node type"
        return name and f"settings {name!r} of the portfolio were used, the best over {graphs}."

    def _best(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> str | None:
        """The first candidate that has most of the given values; None for another architecture."""
        names = [n for n in learned_portfolio().defaults(facts) if "model.architecture" not in _misses(n, fixed)]
        # the layer matters most, then how labels are used
        return min(names, key=lambda name: [part in _misses(name, fixed) for part in MODEL], default=None)


MODEL = ("model.architecture", "model.backbone", "model.labels", "self_training.as_train")
"""Settings that make a model another one."""


def _misses(name: str, fixed: Mapping[str, Any]) -> list[str]:
    """Returns the settings of `MODEL` that a candidate has otherwise."""
    values = {
        "model.architecture": ModelSettings.architecture,
        "self_training.as_train": False,
        **CANDIDATES[name].values,
    }
    return [part for part in MODEL if part in fixed and fixed[part] != values[part]]


# what the paper and its code have in common
_PLAIN = {
    "model.layers": LAYERS,
    "model.label_edges": False,
    "model.label_at_input": False,
    "model.bias": False,
    "model.feature_scale": "none",
}


class Paper(Preset):
    """The paper's equations, and the settings of its experiments by data set, backbone and use of labels.

    `A'` is normalized as a whole, labels enter at label nodes alone, attention has one vector for each type, layers
    have residuals and no biases, nodes of all types share one projection, features stay as they are. Widths, epochs,
    dropout, learning rate and the parameters of AS-Train are those of the paper for ogbn-arxiv, ogbn-mag and oag-venue,
    and those of ogbn-arxiv for any other graph. A backbone that the paper does not have gets the dropout and learning
    rate of GAT, and a lifted one keeps `normalize = relation`, since it has no joint form. docs/choices.md lists what
    the paper leaves open.
    """

    def data(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Features of types without any are metapath2vec's, on the data sets of which the paper says so."""
        has_types = fixed.get("data.source") in ("ogbn-mag", "oag-venue")
        return {"data.missing_features": "metapath2vec"} if has_types else {}

    def choose(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """By data set, backbone and use of labels."""
        source, backbone = str(fixed.get("data.source")), fixed.get("model.backbone", ModelSettings.backbone)
        source = source if source in HYPERPARAMETERS else "ogbn-arxiv"
        of_data_set = HYPERPARAMETERS[source]
        is_ours = backbone in DROPOUT_AND_LR[source]
        by_labels = DROPOUT_AND_LR[source][backbone if is_ours else "gat"]
        dropout, lr = by_labels[fixed.get("model.labels", ModelSettings.labels)]
        chosen = {
            **_PLAIN,
            **of_data_set,
            "model.attention.heads": _heads(of_data_set, fixed),
            "model.normalize": "joint" if traits(backbone).can_be_joint else "relation",
            "model.published.attention_vectors": "shared",
            "model.published.shared_projection": True,
            "model.residual": _residual(fixed),
            "model.dropout": dropout,
            "train.lr": lr,
            "model.input_dropout": 0.0,
            "train.weight_decay": 0.0,
        }
        return chosen | {"train.fanout": _fanout(chosen, fixed)}


class Published(Preset):
    """The model and the training of the paper's published code, without its defects.

    Exact for ogbn-arxiv and ogbn-mag; a graph with several node types has the form for ogbn-mag, any other graph that
    for ogbn-arxiv. docs/choices.md lists where it differs from the code, and why.
    """

    model: Mapping[str, Any] = MappingProxyType({"model.backbone": "gat"})

    def data(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Parallel edges are kept; on ogbn-mag there are no self-loops, and missing features are metapath2vec's."""
        chosen: dict[str, Any] = {"data.undirected": True, "data.remove_duplicates": False, "data.self_loops": True}
        if fixed.get("data.source") == "ogbn-mag":
            chosen |= {"data.self_loops": False, "data.missing_features": "published", "data.type_channels": 128}
        return chosen

    def choose(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """By data set, or the number of node types."""
        source = fixed.get("data.source")
        is_mag = source == "ogbn-mag" or (source != "ogbn-arxiv" and facts.num_types > 1)
        of_data_set = HYPERPARAMETERS["ogbn-mag" if is_mag else "ogbn-arxiv"]
        chosen: dict[str, Any] = {
            **_PLAIN,
            **of_data_set,
            **self.model,
            "model.attention.heads": _heads(of_data_set, fixed),
            "model.normalize": "relation",
            "model.published.node_weight": 2.0,
            "model.published.absent_label": "zero",
            "model.published.target_attention": is_mag,
            "model.published.target_map": is_mag,
            "model.published.symmetric_norm": not is_mag,
            "model.published.scaled_scores": not is_mag,
            "model.residual": _residual(fixed),
            "model.published.label_norm": "batch",
            "model.published.drop_labels": True,
            "model.published.shared_projection": True,
            "model.published.init": "published",
            "train.weight_decay": 0.0,
            "train.precision": "fp32",
            "train.ties": "latest",
        }
        if is_mag:
            chosen |= {
                "model.input_dropout": 0.0,
                "model.published.layer_dropout": 0.1,
                "model.dropout": 0.3,
                "train.lr": 0.001,
            }
            chosen |= {"train.batch": 370, "train.cosine_steps": 50000, "self_training.pseudo_steps": "separate"}
        else:
            chosen |= {
                "model.input_dropout": 0.1,
                "model.published.layer_dropout": 0.0,
                "model.dropout": 0.6,
                "train.lr": 0.002,
            }
            chosen |= {"train.batch": "full" if source == "ogbn-arxiv" else "auto", "train.cosine_steps": "epochs"}
        return chosen | {"train.fanout": _fanout(chosen, fixed)}


def _heads(of_data_set: Mapping[str, Any], fixed: Mapping[str, Any]) -> int:
    # of another width, as many of them as divide it
    return math.gcd(
        fixed.get("model.hidden", of_data_set["model.hidden"]),
        of_data_set.get("model.attention.heads", AttentionSettings.heads),
    )


def _residual(fixed: Mapping[str, Any]) -> str:
    return traits(fixed.get("model.backbone", "")).residual


def _fanout(chosen: Mapping[str, Any], fixed: Mapping[str, Any]) -> str:
    """A fan-out for each time that the model of these settings reads neighbors."""
    values = {**chosen, **fixed}
    model = ModelSettings(
        architecture=values.get("model.architecture", ModelSettings.architecture),
        backbone=values.get("model.backbone", ModelSettings.backbone),
        layers=values.get("model.layers", ModelSettings.layers),
        appnp=AppnpSettings(hops=values.get("model.appnp.hops", AppnpSettings.hops)),
    )
    # a model that reads none has a fan-out too, which is not used
    stages = max(model.stages, 1)
    # the paper's 15, 10, 5 for its three layers, from the input side
    return ",".join(map(str, [*FANOUT, *[FANOUT[-1]] * stages][:stages]))


class OfDesign(Simple):
    """A model of another paper, with the settings of its authors by the number of labels or by data set.

    What they do not say is chosen as in `simple`.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.model = {name: value for name, value in design.model.items() if not name.startswith("data.")}

    def data(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings of the data of the design."""
        return {name: value for name, value in self.design.model.items() if name.startswith("data.")}

    def choose(self, facts: GraphFacts, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """By data set, or the number of training nodes a class."""
        design = self.design
        chosen = super().choose(facts, fixed) | dict(design.few if facts.has_few_labels else design.many)
        chosen |= design.by_data.get(str(fixed.get("data.source")), {})
        chosen |= self.model
        chosen["model.attention.heads"] = _heads(chosen, fixed)
        return chosen | {"train.fanout": _fanout(chosen, fixed), "model.label_edges": False}


PRESETS: dict[str, Preset] = {
    "recommended": Recommended(),
    "simple": Simple(),
    "paper": Paper(),
    "published": Published(),
}
PRESETS |= {name: OfDesign(design) for name, design in DESIGNS.items()}
