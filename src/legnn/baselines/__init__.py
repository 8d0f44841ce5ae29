"""Other models and post-processing. A new one is a class in a file, and a line here."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from importlib import import_module
from typing import Any

from legnn.baselines.label_propagation import CorrectAndSmooth, LabelPropagation
from legnn.config.model import PROPAGATED, ModelSettings
from legnn.nn import APPNP, DAGNN, LEGNN, DataShape, Model
from legnn.training import PostProcess

__all__ = ["ARCHITECTURES", "POSTPROCESS", "CorrectAndSmooth", "LabelPropagation"]

Builder = Callable[[ModelSettings, DataShape], Model]


def _legnn(settings: ModelSettings, data: DataShape) -> Model:
    if settings.backbone in PROPAGATED:
        return (APPNP if settings.backbone == "appnp" else DAGNN)(settings, data)
    return LEGNN(data.features, data.classes, settings, data.label_features, data.types, data.relations)


def _label_propagation(settings: ModelSettings, data: DataShape) -> Model:
    return LabelPropagation(settings.label_propagation.steps, settings.label_propagation.alpha)


class _Architectures(UserDict[str, Builder | str]):
    """Builders by name: functions, or classes of this package that are imported when they are asked for."""

    def __getitem__(self, name: str) -> Any:
        builder = self.data[name]
        return getattr(import_module(f"legnn.baselines.{name}"), builder) if isinstance(builder, str) else builder


ARCHITECTURES = _Architectures(
    {
        "legnn": _legnn,
        "pyg_gcn": "PyGGCN",
        "label_propagation": _label_propagation,
        "mlp": "MLP",
        "jknet": "JKNet",
        "sign": "SIGN",
        "unimp": "UniMP",
        "deeper_gcn": "DeeperGCN",
        "gaan": "GaAN",
        "gcn_lpa": "GCNLPA",
        "label_highway": "LabelHighway",
        "boosted_trees": "BoostedTrees",
        "metapath_labels": "MetapathLabels",
        "hgconv": "HGConv",
        "hetsann": "HetSANN",
        "r_hgnn": "RHGNN",
        "r_gsn": "RGSN",
        "rshn": "RSHN",
    }
)
"""Builders of models by the name that `architecture` holds; a class stands in the module of that name."""


def __getattr__(name: str) -> Any:
    """Returns a class of a design, imported when it is asked for: `from legnn.baselines import UniMP`."""
    for module, builder in ARCHITECTURES.data.items():
        if builder == name:
            return ARCHITECTURES[module]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


POSTPROCESS: dict[str, Callable[[ModelSettings], PostProcess | None]] = {
    "none": lambda settings: None,
    "correct_and_smooth": lambda settings: CorrectAndSmooth(
        settings.label_propagation.steps, settings.label_propagation.alpha
    ),
}
"""Builders of post-processing by the name that `postprocess` holds."""
