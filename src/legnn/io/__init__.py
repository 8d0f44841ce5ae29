"""Tables, prepared folders and predictions: in and out."""

from legnn.io.predictions import read_predictions, write_predictions
from legnn.io.text_features import TextFeatures

__all__ = ["TextFeatures", "read_predictions", "write_predictions"]
