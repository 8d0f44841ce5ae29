"""From a name, a folder of tables, or a PyG object to one validated `Data`."""

from legnn.data.catalog import CATALOG, NamedSet
from legnn.data.download import data_folder, without_downloads
from legnn.data.features import TextFeatures
from legnn.data.fingerprint import fingerprint
from legnn.data.loading import load, prepare_folder
from legnn.data.predictions import read_predictions, write_predictions
from legnn.data.prepare import prepare
from legnn.data.settings import DataSettings
from legnn.data.statistics import Statistics, edge_count, edge_homophily, statistics
from legnn.data.validate import validate

__all__ = [
    "CATALOG",
    "DataSettings",
    "NamedSet",
    "Statistics",
    "TextFeatures",
    "data_folder",
    "edge_count",
    "edge_homophily",
    "fingerprint",
    "load",
    "prepare",
    "prepare_folder",
    "read_predictions",
    "statistics",
    "validate",
    "without_downloads",
    "write_predictions",
]
