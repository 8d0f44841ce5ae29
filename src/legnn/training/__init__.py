"""Training: the loop, full batch, AS-Train, evaluation. No files are read or written here."""

from legnn.training.as_train import (
    PseudoLabels,
    pseudo_label_accuracy,
    pseudo_label_loss,
    select_pseudo_labels,
    training_confidence,
)
from legnn.training.evaluate import fold_of, predict_without_own_label
from legnn.training.full_batch import FullBatch
from legnn.training.loop import EpochLog, Trainer
from legnn.training.metrics import Scores, score
from legnn.training.optimizer import make_adam
from legnn.training.precision import Precision, matrix_products, prediction_precision, training_precision
from legnn.training.settings import ASTrain, TrainSettings
from legnn.training.task import Task

__all__ = [
    "ASTrain",
    "EpochLog",
    "FullBatch",
    "Precision",
    "PseudoLabels",
    "Scores",
    "Task",
    "TrainSettings",
    "Trainer",
    "fold_of",
    "make_adam",
    "matrix_products",
    "predict_without_own_label",
    "prediction_precision",
    "pseudo_label_accuracy",
    "pseudo_label_loss",
    "score",
    "select_pseudo_labels",
    "training_confidence",
    "training_precision",
]
