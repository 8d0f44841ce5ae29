"""The named data sets, and `load`: from a name, a folder or a PyG object to one validated graph."""

from legnn.datasets.catalog import CATALOG, NamedSet
from legnn.datasets.download import data_folder, without_downloads
from legnn.datasets.loading import Source, check_prepared, check_source, load, prepare_folder

__all__ = [
    "CATALOG",
    "NamedSet",
    "Source",
    "check_prepared",
    "check_source",
    "data_folder",
    "load",
    "prepare_folder",
    "without_downloads",
]
