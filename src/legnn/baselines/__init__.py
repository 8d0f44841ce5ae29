"""Other models and post-processing. A new one is a class in a file, and a line here."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from legnn.baselines.correct_and_smooth import CorrectAndSmooth
from legnn.baselines.label_propagation import LabelPropagation
from legnn.baselines.pyg_gcn import PyGGCN
from legnn.config.model import ModelSettings
from legnn.nn import LEGNN, Model
from legnn.training import PostProcess

__all__ = ["ARCHITECTURES", "POSTPROCESS", "CorrectAndSmooth", "LabelPropagation", "PyGGCN"]

ARCHITECTURES: dict[str, Callable[[ModelSettings, int, int, Tensor | None, int], Model]] = {
    "legnn": lambda settings, features, classes, label_x, types: LEGNN(features, classes, settings, label_x, types),
    "pyg_gcn": lambda settings, features, classes, _, types: PyGGCN(features, classes, settings, types),
    "label_propagation": lambda settings, features, classes, _, types: LabelPropagation(
        settings.propagation_steps, settings.propagation_alpha
    ),
}
"""Builders of models by the name that `architecture` holds, from `(settings, in_channels, num_classes, label_features,
num_types)`."""

POSTPROCESS: dict[str, Callable[[ModelSettings], PostProcess | None]] = {
    "none": lambda settings: None,
    "correct_and_smooth": lambda settings: CorrectAndSmooth(settings.propagation_steps, settings.propagation_alpha),
}
"""Builders of post-processing by the name that `postprocess` holds."""
