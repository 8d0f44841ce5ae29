"""The settings that a search varies, their values in order, and when each of them matters."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from legnn.config import SETTINGS, GraphFacts, Settings
from legnn.config.model import BACKBONES, PROPAGATED, traits
from legnn.errors import InputError

Values = Mapping[str, Any]
"""Settings by name."""

SOME_GRAPH = GraphFacts(num_train=1000, num_classes=10, counts_features=False, has_label_edges=False)
"""A graph with many labels, by which settings are completed without a graph."""

_TRAINED = (
    "model.hidden",
    "model.layers",
    "model.norm",
    "model.dropout",
    "train.lr",
    "train.cosine_steps",
    "train.weight_decay",
    "train.weight_decay_layers",
    "train.class_weights",
    "self_training.as_train",
    "self_training.pseudo_label_threshold",
    "self_training.delta",
    "self_training.pseudo_label_weight",
)
_FEATURES = ("model.input_dropout", "model.feature_scale")

READ_BY: dict[str, tuple[str, ...]] = {
    "legnn": (
        *_TRAINED,
        *_FEATURES,
        "model.backbone",
        "model.labels",
        "model.residual",
        "model.normalize",
        "train.alpha",
        "model.attention.heads",
        "model.appnp.hops",
        "model.appnp.teleport",
        "model.gcnii.identity_decay",
    ),
    "mlp": (*_TRAINED, *_FEATURES),
    "unimp": (*_TRAINED, *_FEATURES, "model.attention.heads", "train.alpha"),
    "pyg_gcn": (*_TRAINED, "model.feature_scale"),
    "sign": (*_TRAINED, *_FEATURES, "model.appnp.hops"),
    "jknet": (*_TRAINED, *_FEATURES, "model.jknet.mode"),
    "gcn_lpa": (*_TRAINED, *_FEATURES, "model.gcn_lpa.loss_weight"),
    "label_highway": (*_TRAINED, *_FEATURES, "train.alpha"),
    "gaan": (*_TRAINED, *_FEATURES, "model.attention.heads"),
    "label_propagation": ("model.label_propagation.steps", "model.label_propagation.alpha"),
    "boosted_trees": ("model.boosted_trees.trees", "model.boosted_trees.learning_rate", "model.boosted_trees.leaves"),
}
"""The settings that an architecture reads."""
READ_BY_OTHERS = (*_TRAINED, *_FEATURES)
"""Settings that an architecture without an entry reads."""

DEEPEST = 8
"""Most layers of a model that was not made for more, as GCNII and DeeperGCN were."""


def _always(settings: Values) -> bool:
    return True


def _has_hidden(settings: Values) -> bool:
    # one matrix from the features to the classes, in models that propagate its output or none
    direct = settings["model.architecture"] == "mlp" or (
        _is_ours(settings) and settings["model.backbone"] in PROPAGATED
    )
    return settings["model.layers"] > 1 or not direct


def _is_ours(settings: Values) -> bool:
    return bool(settings["model.architecture"] == "legnn")


def _shows_labels(settings: Values) -> bool:
    return not _is_ours(settings) or settings["model.labels"] != "vanilla"


def _self_trains(settings: Values) -> bool:
    return bool(settings["self_training.as_train"])


def _of_backbone(*names: str) -> Callable[[Values], bool]:
    def applies(settings: Values) -> bool:
        return not _is_ours(settings) or settings["model.backbone"] in names

    return applies


class Tunable(NamedTuple):
    """A setting that can be varied."""

    name: str
    values: Sequence[Any]
    """Numbers in ascending order, or words."""
    matters: Callable[[Values], bool] = _always
    """Whether it changes anything under complete settings of an architecture that reads it."""

    @property
    def is_ordered(self) -> bool:
        """Whether a value has one before and one after it."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)

    def applies(self, settings: Values) -> bool:
        """Whether it changes anything under complete `settings`."""
        return self.name in READ_BY.get(settings["model.architecture"], READ_BY_OTHERS) and self.matters(settings)

    def nearest(self, value: Any) -> Any:
        """The value in the list that is nearest to `value`; a word that is not in it is its first."""
        if value in self.values:
            return value
        return min(self.values, key=lambda option: abs(option - value)) if self.is_ordered else self.values[0]

    def steps(self, value: Any) -> list[Any]:
        """The values one step from `value`: the next smaller and the next larger, or all other words."""
        if not self.is_ordered:
            return [option for option in self.values if option != value]
        index = self.values.index(self.nearest(value))
        if value != self.values[index]:
            return [self.values[index]]
        return [self.values[k] for k in (index - 1, index + 1) if 0 <= k < len(self.values)]


def _words(name: str, matters: Callable[[Values], bool] = _always) -> Tunable:
    setting = SETTINGS[name]
    return Tunable(name, (False, True) if setting.is_switch else tuple(setting.choices), matters)


_DECAYS = (0.0, 5e-5, 5e-4, 5e-3, 5e-2)
_BACKBONES = tuple(name for name in BACKBONES if traits(name).can_be_joint)
"""Backbones of a graph and its labels; others are PyG's, or for several node types."""

SPACE: dict[str, Tunable] = {
    tunable.name: tunable
    for tunable in (
        # in this order: what decides whether another matters comes first
        Tunable("model.backbone", _BACKBONES, _of_backbone(*_BACKBONES)),
        _words("model.labels"),
        Tunable("model.layers", (1, 2, 3, 4, 5, 6, DEEPEST, 16, 32, 64)),
        Tunable("model.hidden", (64, 128, 256, 512), _has_hidden),
        Tunable("model.attention.heads", (1, 2, 4, 8), _of_backbone("gat", "gatv2", "transformer", "hgt")),
        _words("model.norm", _has_hidden),
        # GraphSAGE's root weight is a linear residual already, and GCNII adds its first states in every layer
        _words("model.residual", lambda settings: settings["model.backbone"] not in ("gcnii", *PROPAGATED)),
        _words(
            "model.normalize",
            lambda settings: settings["model.labels"] == "enhanced" and traits(settings["model.backbone"]).can_be_joint,
        ),
        Tunable("model.appnp.hops", (2, 3, 5, 10, 16, 20), _of_backbone(*PROPAGATED)),
        Tunable("model.appnp.teleport", (0.05, 0.1, 0.2, 0.5), _of_backbone("gcnii", "appnp")),
        Tunable("model.gcnii.identity_decay", (0.3, 0.5, 1.0, 1.5), _of_backbone("gcnii")),
        _words("model.feature_scale"),
        Tunable("model.dropout", (0.0, 0.2, 0.3, 0.5, 0.7), _has_hidden),
        Tunable("model.input_dropout", (0.0, 0.1, 0.3, 0.5, 0.8)),
        Tunable("train.lr", (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)),
        # over all epochs, or not at all
        Tunable("train.cosine_steps", ("epochs", 1_000_000)),
        Tunable("train.weight_decay", _DECAYS),
        Tunable("train.weight_decay_layers", _DECAYS),
        Tunable("train.alpha", (0.3, 0.5, 0.7, 0.9), _shows_labels),
        _words("train.class_weights"),
        _words("self_training.as_train"),
        Tunable("self_training.pseudo_label_threshold", (0.5, 0.6, 0.7, 0.8, 0.9), _self_trains),
        Tunable("self_training.delta", (5.0, 10.0, 30.0, 100.0), _self_trains),
        Tunable("self_training.pseudo_label_weight", (0.05, 0.1, 0.3, 0.5, 1.0), _self_trains),
        _words("model.jknet.mode"),
        Tunable("model.gcn_lpa.loss_weight", (0.1, 1.0, 10.0)),
        Tunable("model.boosted_trees.trees", (50, 100, 200, 400)),
        Tunable("model.boosted_trees.learning_rate", (0.03, 0.1, 0.3)),
        Tunable("model.boosted_trees.leaves", (4, 8, 16, 31, 63)),
        Tunable("model.label_propagation.steps", (2, 5, 10, 20, 50, 100)),
        Tunable("model.label_propagation.alpha", (0.3, 0.5, 0.7, 0.9, 0.99)),
    )
}
"""Settings that can be varied, by name."""


def complete(values: Values, facts: GraphFacts = SOME_GRAPH) -> dict[str, Any]:
    """Returns all settings by name: `values`, and what the preset `simple` chooses for a graph with these facts."""
    return Settings(preset="simple", values=values).resolve(facts).flat()


def changed(origin: Values, other: Values) -> list[str]:
    """The names of the tunable settings that matter under both complete settings, and differ."""
    both = [name for name, tunable in SPACE.items() if tunable.applies(origin) and tunable.applies(other)]
    return [name for name in both if origin[name] != other[name]]


CONSTRAINED = (
    "model.backbone",
    "model.labels",
    "model.layers",
    "model.hidden",
    "model.attention.heads",
    "model.residual",
    "model.normalize",
)
"""The settings that `is_allowed` reads."""


def is_allowed(settings: Values) -> bool:
    """Whether complete settings make a model that can be trained, and that is not too deep for its kind."""
    has_heads = SPACE["model.attention.heads"].applies(settings)
    if (has_heads and settings["model.hidden"] % settings["model.attention.heads"]) or settings[
        "model.layers"
    ] > _most_layers(settings):
        return False
    if not _is_ours(settings):
        return True
    backbone, residual = settings["model.backbone"], settings["model.residual"]
    is_joint = settings["model.labels"] == "enhanced" and settings["model.normalize"] == "joint"
    return not (is_joint and not traits(backbone).can_be_joint) and residual == fitting_residual(backbone, residual)


def _most_layers(settings: Values) -> float:
    is_deep = (
        settings["model.backbone"] == "gcnii" if _is_ours(settings) else settings["model.architecture"] == "deeper_gcn"
    )
    return math.inf if is_deep else DEEPEST


def fitting_residual(backbone: str, residual: str) -> str:
    """Returns `residual`, or the closest one that fits the backbone."""
    fitting = traits(backbone).residual
    return fitting if fitting == "none" or residual == "linear" else residual


SEED_EVERY = 10
"""One in so many neighbors has another seed and nothing else."""
MOST_DRAWS = 40
"""Draws for each neighbor that is wanted, before fewer are returned."""


def neighbors(
    values: Values,
    rng: random.Random,
    count: int,
    *,
    facts: GraphFacts = SOME_GRAPH,
    fixed: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Returns up to `count` local changes of settings, different from each other, that can all be trained.

    Each differs in one or two tunable settings that matter, by one step or another word, or now and then in its seed.

    Args:
        values: settings by name, as a candidate has them.
        facts: of the graph, by which the settings that `values` leave open are known.
        fixed: names of settings that stay as they are.
    """
    origin = complete(values, facts)
    changes: list[dict[str, Any]] = []
    seen = [origin]
    for _ in range(MOST_DRAWS * count):
        if len(changes) == count:
            break
        drawn = _draw(values, origin, rng, fixed)
        if drawn is None:
            continue
        try:
            now = complete(drawn, facts)
        except InputError:
            continue
        differs = len(changed(origin, now)) <= 2 and now not in seen
        if differs and is_allowed(now):
            seen.append(now)
            changes.append(drawn)
    return changes


def _draw(values: Values, origin: Values, rng: random.Random, fixed: Collection[str]) -> dict[str, Any] | None:
    """One local change, which may not be allowed; None where there is nothing to vary."""
    is_trained = "train.lr" in READ_BY.get(origin["model.architecture"], READ_BY_OTHERS)
    if is_trained and "train.seed" not in fixed and rng.randrange(SEED_EVERY) == 0:
        return {**values, "train.seed": rng.randrange(1, 10_000)}
    drawn, now = dict(values), dict(origin)
    names: list[str] = []
    for _ in range(rng.choice((1, 2))):
        open_names = [n for n, tunable in SPACE.items() if tunable.applies(now) and n not in fixed and n not in names]
        if not open_names:
            break
        name = rng.choice(open_names)
        names.append(name)
        drawn[name] = now[name] = rng.choice(SPACE[name].steps(now[name]))
    if not names:
        return None
    if _is_ours(now) and "model.residual" not in fixed:
        residual = fitting_residual(now["model.backbone"], now["model.residual"])
        if residual != now["model.residual"]:
            drawn["model.residual"] = residual
    if {"model.layers", "model.appnp.hops", "model.backbone"} & set(names) and "train.fanout" not in fixed:
        # it has a number for each time that neighbors are read
        drawn.pop("train.fanout", None)
    return drawn
