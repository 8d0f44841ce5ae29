"""Training: the loop, full batch, AS-Train, evaluation. No files are read or written here."""

from legnn.config import SelfTrainingSettings, TrainSettings, fanouts_for
from legnn.training.as_train import (
    PseudoLabels,
    pseudo_label_accuracy,
    pseudo_label_loss,
    select_pseudo_labels,
    training_confidence,
)
from legnn.training.batching import Batching
from legnn.training.evaluate import fold_of, predict_without_own_label
from legnn.training.full_batch import FullBatch
from legnn.training.layer_wise import LayerWise
from legnn.training.loop import EpochLog, Trainer
from legnn.training.metrics import Scores, score
from legnn.training.mini_batch import MiniBatch
from legnn.training.optimizer import make_adam
from legnn.training.precision import Precision, matrix_products, prediction_precision, training_precision
from legnn.training.ranks import Ranks, join_ranks, restarted, under_torchrun
from legnn.training.task import Task

__all__ = [
    "Batching",
    "EpochLog",
    "FullBatch",
    "LayerWise",
    "MiniBatch",
    "Precision",
    "PseudoLabels",
    "Ranks",
    "Scores",
    "SelfTrainingSettings",
    "Task",
    "TrainSettings",
    "Trainer",
    "fanouts_for",
    "fold_of",
    "join_ranks",
    "make_adam",
    "matrix_products",
    "predict_without_own_label",
    "prediction_precision",
    "pseudo_label_accuracy",
    "pseudo_label_loss",
    "restarted",
    "score",
    "select_pseudo_labels",
    "training_confidence",
    "training_precision",
    "under_torchrun",
]
