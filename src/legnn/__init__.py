"""Classify the nodes of a partly labeled graph by putting the labels into the graph.

>>> import legnn
>>> run = legnn.train("digits", backbone="gcn", labels="enhanced")
>>> run.result.test["accuracy"]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from legnn.config import (
        DataSettings,
        GraphFacts,
        ModelSettings,
        ResolvedSettings,
        SelfTrainingSettings,
        Settings,
        TrainSettings,
    )
    from legnn.data import GraphData, statistics
    from legnn.datasets import CATALOG, from_arrays, load, prepare_folder
    from legnn.errors import InputError, Interrupted, LegnnError
    from legnn.estimator import AutoLEGNNClassifier, LEGNNClassifier
    from legnn.graph import Adjacency, LabelGraph, select_training_nodes
    from legnn.labels.acquisition import next_labels
    from legnn.labels.audit import Audit, audit
    from legnn.labels.check import LabelCheck, check_labels
    from legnn.nn import LEGNN, lift, lifted, register_backbone
    from legnn.report import write_report
    from legnn.runs import (
        CrossFit,
        Ensemble,
        Predictor,
        Result,
        Run,
        RunFolder,
        Summary,
        train,
    )
    from legnn.runs import open_predictor as open
    from legnn.search.auto import auto
    from legnn.sweep.cross_fitting import cross_fit
    from legnn.sweep.resume import resume
    from legnn.sweep.seeds import train_seeds

# PyTorch and PyG take seconds to import: a name is imported when it is first used, and `legnn --help` answers at once
_HOME = {
    "config": "DataSettings GraphFacts ModelSettings ResolvedSettings SelfTrainingSettings Settings TrainSettings",
    "data": "GraphData statistics",
    "datasets": "CATALOG from_arrays load prepare_folder",
    "errors": "InputError Interrupted LegnnError",
    "estimator": "AutoLEGNNClassifier LEGNNClassifier",
    "graph": "Adjacency LabelGraph select_training_nodes",
    "labels.acquisition": "next_labels",
    "labels.audit": "Audit audit",
    "labels.check": "LabelCheck check_labels",
    "nn": "LEGNN lift lifted register_backbone",
    "report": "write_report",
    "runs": "CrossFit Ensemble Predictor Result Run RunFolder Summary train",
    "search.auto": "auto",
    "sweep.cross_fitting": "cross_fit",
    "sweep.resume": "resume",
    "sweep.seeds": "train_seeds",
}
_ATTRIBUTE = {"open": "open_predictor"}
"""Public names that hide a built-in one, and are defined under another."""
_MODULE = {"open": "legnn.runs"} | {name: f"legnn.{room}" for room, names in _HOME.items() for name in names.split()}

__all__ = [
    "CATALOG",
    "LEGNN",
    "Adjacency",
    "Audit",
    "AutoLEGNNClassifier",
    "CrossFit",
    "DataSettings",
    "Ensemble",
    "GraphData",
    "GraphFacts",
    "InputError",
    "Interrupted",
    "LEGNNClassifier",
    "LabelCheck",
    "LabelGraph",
    "LegnnError",
    "ModelSettings",
    "Predictor",
    "ResolvedSettings",
    "Result",
    "Run",
    "RunFolder",
    "SelfTrainingSettings",
    "Settings",
    "Summary",
    "TrainSettings",
    "audit",
    "auto",
    "check_labels",
    "cross_fit",
    "from_arrays",
    "lift",
    "lifted",
    "load",
    "next_labels",
    "open",
    "prepare_folder",
    "register_backbone",
    "resume",
    "select_training_nodes",
    "statistics",
    "train",
    "train_seeds",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'legnn' has no attribute {name!r}")
    return getattr(import_module(_MODULE[name]), _ATTRIBUTE.get(name, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
