"""The layers, the lift of any PyG convolution, and the model."""

from legnn.config.model import ModelSettings
from legnn.nn.backbones import BACKBONES, LayerSpec, lifted, register_backbone
from legnn.nn.base import DataShape, Model, StagedModel
from legnn.nn.gat import GAT
from legnn.nn.gcn import GCN
from legnn.nn.layer import LabelLayer, LayerOptions
from legnn.nn.lifting import Lift
from legnn.nn.model import LEGNN, Representations
from legnn.nn.propagated import APPNP, DAGNN
from legnn.nn.sage import SAGE

__all__ = [
    "APPNP",
    "BACKBONES",
    "DAGNN",
    "GAT",
    "GCN",
    "LEGNN",
    "SAGE",
    "DataShape",
    "LabelLayer",
    "LayerOptions",
    "LayerSpec",
    "Lift",
    "Model",
    "ModelSettings",
    "Representations",
    "StagedModel",
    "lifted",
    "register_backbone",
]
