"""Training: the loop, full batch, AS-Train, evaluation. No files are read or written here."""

from legnn.training.as_train import PseudoLabels, pseudo_label_loss, select_pseudo_labels, training_confidence
from legnn.training.evaluate import fold_of, predict_without_own_label
from legnn.training.full_batch import FullBatch
from legnn.training.loop import EpochLog, Trainer
from legnn.training.metrics import Scores, score
from legnn.training.settings import ASTrain, TrainSettings
from legnn.training.task import Task

__all__ = [
    "ASTrain",
    "EpochLog",
    "FullBatch",
    "PseudoLabels",
    "Scores",
    "Task",
    "TrainSettings",
    "Trainer",
    "fold_of",
    "predict_without_own_label",
    "pseudo_label_loss",
    "score",
    "select_pseudo_labels",
    "training_confidence",
]
