"""Classify the nodes of a partly labeled graph by putting the labels into the graph.

>>> import legnn
>>> run = legnn.train("digits", backbone="gcn", labels="enhanced")
>>> run.result["test"]["accuracy"]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# PyTorch and PyG take seconds to import: a name is imported when it is first used, and `legnn --help` answers at once
_HOME = {
    "legnn.config": ("DataSettings",),
    "legnn.config.settings": ("Settings", "resolve"),
    "legnn.data": ("GraphData", "statistics"),
    "legnn.datasets": ("CATALOG", "load", "prepare_folder"),
    "legnn.errors": ("InputError", "Interrupted"),
    "legnn.graph": ("Adjacency", "LabelGraph", "select_training_nodes"),
    "legnn.nn": ("LEGNN", "ModelSettings", "lift", "lifted", "register_backbone"),
    "legnn.runs": ("Run", "RunFolder", "predict", "resume", "train", "train_seeds"),
    "legnn.training": ("ASTrain", "TrainSettings"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

if TYPE_CHECKING:
    from legnn.config import DataSettings
    from legnn.config.settings import Settings, resolve
    from legnn.data import GraphData, statistics
    from legnn.datasets import CATALOG, load, prepare_folder
    from legnn.errors import InputError, Interrupted
    from legnn.graph import Adjacency, LabelGraph, select_training_nodes
    from legnn.nn import LEGNN, ModelSettings, lift, lifted, register_backbone
    from legnn.runs import Run, RunFolder, predict, resume, train, train_seeds
    from legnn.training import ASTrain, TrainSettings

__all__ = [
    "CATALOG",
    "LEGNN",
    "ASTrain",
    "Adjacency",
    "DataSettings",
    "GraphData",
    "InputError",
    "Interrupted",
    "LabelGraph",
    "ModelSettings",
    "Run",
    "RunFolder",
    "Settings",
    "TrainSettings",
    "lift",
    "lifted",
    "load",
    "predict",
    "prepare_folder",
    "register_backbone",
    "resolve",
    "resume",
    "select_training_nodes",
    "statistics",
    "train",
    "train_seeds",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'legnn' has no attribute {name!r}")
    return getattr(import_module(_MODULE[name]), name)
