"""Tables, prepared folders and predictions: in and out."""

from legnn.io.predictions import CategoricalColumn, PredictionTable, read_predictions, write_predictions
from legnn.io.table_features import TableFeatures

__all__ = ["CategoricalColumn", "PredictionTable", "TableFeatures", "read_predictions", "write_predictions"]
