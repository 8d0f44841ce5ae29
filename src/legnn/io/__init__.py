"""Tables, prepared folders and predictions: in and out."""

from legnn.io.predictions import Named, PredictionTable, read_predictions, write_predictions
from legnn.io.table_features import TableFeatures

__all__ = ["Named", "PredictionTable", "TableFeatures", "read_predictions", "write_predictions"]
