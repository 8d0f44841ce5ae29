"""The named data sets, and `load`: from a name, a folder or an object in memory to one validated graph."""

from legnn.datasets.arrays import from_arrays
from legnn.datasets.catalog import CATALOG, NamedSet
from legnn.datasets.loading import Source, check_prepared, check_source, load, prepare_folder, table_folders
from legnn.files import data_folder

__all__ = [
    "CATALOG",
    "NamedSet",
    "Source",
    "check_prepared",
    "check_source",
    "data_folder",
    "from_arrays",
    "load",
    "prepare_folder",
    "table_folders",
]
