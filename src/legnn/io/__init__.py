"""Tables, prepared folders and predictions: in and out."""

from typing import TYPE_CHECKING

from legnn.io.predictions import CategoricalColumn, PredictionTable, read_predictions, write_predictions
from legnn.lazy import lazy_names

if TYPE_CHECKING:
    from legnn.io.table_features import TableFeatures

# readers of tables are not needed for a graph in memory
__getattr__ = lazy_names(__name__, {"table_features": "TableFeatures"})

__all__ = ["CategoricalColumn", "PredictionTable", "TableFeatures", "read_predictions", "write_predictions"]
