"""Other models and post-processing. A new one is a class in a file, and a line here."""

from __future__ import annotations

from collections.abc import Callable

from legnn.baselines.boosted_trees import BoostedTrees
from legnn.baselines.correct_and_smooth import CorrectAndSmooth
from legnn.baselines.deeper_gcn import DeeperGCN
from legnn.baselines.gaan import GaAN
from legnn.baselines.gcn_lpa import GCNLPA
from legnn.baselines.hetsann import HetSANN
from legnn.baselines.hgconv import HGConv
from legnn.baselines.jknet import JKNet
from legnn.baselines.label_highway import LabelHighway
from legnn.baselines.label_propagation import LabelPropagation
from legnn.baselines.metapath_labels import MetapathLabels
from legnn.baselines.mlp import MLP
from legnn.baselines.pyg_gcn import PyGGCN
from legnn.baselines.r_gsn import RGSN
from legnn.baselines.r_hgnn import RHGNN
from legnn.baselines.rshn import RSHN
from legnn.baselines.sign import SIGN
from legnn.baselines.unimp import UniMP
from legnn.config.model import PROPAGATED, ModelSettings
from legnn.nn import APPNP, DAGNN, LEGNN, DataShape, Model
from legnn.training import PostProcess

__all__ = ["ARCHITECTURES", "POSTPROCESS", "CorrectAndSmooth", "LabelPropagation"]


def _legnn(settings: ModelSettings, data: DataShape) -> Model:
    if settings.backbone in PROPAGATED:
        return (APPNP if settings.backbone == "appnp" else DAGNN)(settings, data)
    return LEGNN(data.features, data.classes, settings, data.label_features, data.types, data.relations)


def _label_propagation(settings: ModelSettings, data: DataShape) -> Model:
    return LabelPropagation(settings.propagation_steps, settings.propagation_alpha)


ARCHITECTURES: dict[str, Callable[[ModelSettings, DataShape], Model]] = {
    "legnn": _legnn,
    "pyg_gcn": PyGGCN,
    "label_propagation": _label_propagation,
    "mlp": MLP,
    "jknet": JKNet,
    "sign": SIGN,
    "unimp": UniMP,
    "deeper_gcn": DeeperGCN,
    "gaan": GaAN,
    "gcn_lpa": GCNLPA,
    "label_highway": LabelHighway,
    "boosted_trees": BoostedTrees,
    "metapath_labels": MetapathLabels,
    "hgconv": HGConv,
    "hetsann": HetSANN,
    "r_hgnn": RHGNN,
    "r_gsn": RGSN,
    "rshn": RSHN,
}
"""Builders of models by the name that `architecture` holds."""

POSTPROCESS: dict[str, Callable[[ModelSettings], PostProcess | None]] = {
    "none": lambda settings: None,
    "correct_and_smooth": lambda settings: CorrectAndSmooth(settings.propagation_steps, settings.propagation_alpha),
}
"""Builders of post-processing by the name that `postprocess` holds."""
