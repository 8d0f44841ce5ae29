"""Training: the loop, full batches and mini-batches, the objective, inference. No files are read or written here."""

from legnn.config.training import TrainSettings, fanouts_for
from legnn.training.full_batch import FullBatch
from legnn.training.inference import Inference, assign_folds, predict_without_own_label
from legnn.training.layer_wise import LayerWise
from legnn.training.loop import EpochLog, Trainer
from legnn.training.metrics import Scores, score
from legnn.training.mini_batch import MiniBatch
from legnn.training.objective import ASTrain, Objective, PseudoLabels, training_confidence
from legnn.training.optimizer import make_adam
from legnn.training.precision import Precision, matrix_products, prediction_precision, training_precision
from legnn.training.protocols import (
    Batching,
    Model,
    PostProcess,
    Predictor,
    SelfTrainingRule,
    StagedModel,
    require_staged,
)
from legnn.training.ranks import Ranks, is_restarted, join_ranks, under_torchrun
from legnn.training.task import Task

__all__ = [
    "ASTrain",
    "Batching",
    "EpochLog",
    "FullBatch",
    "Inference",
    "LayerWise",
    "MiniBatch",
    "Model",
    "Objective",
    "PostProcess",
    "Precision",
    "Predictor",
    "PseudoLabels",
    "Ranks",
    "Scores",
    "SelfTrainingRule",
    "StagedModel",
    "Task",
    "TrainSettings",
    "Trainer",
    "assign_folds",
    "fanouts_for",
    "is_restarted",
    "join_ranks",
    "make_adam",
    "matrix_products",
    "predict_without_own_label",
    "prediction_precision",
    "require_staged",
    "score",
    "training_confidence",
    "training_precision",
    "under_torchrun",
]
