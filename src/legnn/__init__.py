"""Classify the nodes of a partly labeled graph by putting the labels into the graph.

>>> import legnn
>>> run = legnn.train("digits", backbone="gcn", labels="enhanced")
>>> run.result.test["accuracy"]
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

__version__ = "0.1.0"

if _TYPE_CHECKING:
    from legnn.config import Settings
    from legnn.data import GraphData, statistics
    from legnn.datasets import from_arrays, load, prepare_folder
    from legnn.errors import InputError, Interrupted, LegnnError
    from legnn.estimator import AutoLEGNNClassifier, LEGNNClassifier
    from legnn.graph import LabelGraph, select_training_nodes
    from legnn.labels.acquisition import next_labels
    from legnn.labels.audit import audit
    from legnn.labels.check import check_labels
    from legnn.nn import LEGNN, lifted, register_backbone
    from legnn.report import write_report
    from legnn.runs import Predictor, Run, train
    from legnn.runs import open_predictor as open
    from legnn.search.auto import auto
    from legnn.search.resume import resume
    from legnn.sweep.cross_fitting import cross_fit
    from legnn.sweep.seeds import train_seeds

# PyTorch and PyG take seconds to import: a name is imported when it is first used, and `legnn --help` answers at once
_NAMES = {
    "config": "Settings",
    "data": "GraphData statistics",
    "datasets": "from_arrays load prepare_folder",
    "errors": "InputError Interrupted LegnnError",
    "estimator": "AutoLEGNNClassifier LEGNNClassifier",
    "graph": "LabelGraph select_training_nodes",
    "labels.acquisition": "next_labels",
    "labels.audit": "audit",
    "labels.check": "check_labels",
    "nn": "LEGNN lifted register_backbone",
    "report": "write_report",
    "runs": "Predictor Run train",
    "search.auto": "auto",
    "search.resume": "resume",
    "sweep.cross_fitting": "cross_fit",
    "sweep.seeds": "train_seeds",
}
_SOURCES = {name: (f"legnn.{module}", name) for module, names in _NAMES.items() for name in names.split()}
# inside the library `open` is the built-in function
_SOURCES["open"] = ("legnn.runs", "open_predictor")

__all__ = [
    "LEGNN",
    "AutoLEGNNClassifier",
    "GraphData",
    "InputError",
    "Interrupted",
    "LEGNNClassifier",
    "LabelGraph",
    "LegnnError",
    "Predictor",
    "Run",
    "Settings",
    "audit",
    "auto",
    "check_labels",
    "cross_fit",
    "from_arrays",
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


def __getattr__(name: str) -> object:
    if name not in _SOURCES:
        raise AttributeError(f"module 'legnn' has no attribute {name!r}")
    module, attribute = _SOURCES[name]
    return getattr(_import_module(module), attribute)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
