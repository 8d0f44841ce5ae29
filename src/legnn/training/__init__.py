"""Training: the loop, full batches and mini-batches, the objective, inference. No files are read or written here."""

from typing import TYPE_CHECKING

from legnn.lazy import lazy_names
from legnn.training.batching import Batching, DevicePlan, require_staged
from legnn.training.full_batch import FullBatch
from legnn.training.inference import Inference, PostProcess, assign_folds, predict_without_own_label, split_by_fold
from legnn.training.loop import EpochLog, Trainer
from legnn.training.metrics import METRICS, Metric, Scores, choosing_metrics, require_metric, score, title_of
from legnn.training.objective import Objective, balanced_class_weight
from legnn.training.optimizer import make_adam
from legnn.training.ranks import Ranks
from legnn.training.self_training import Agreement, ASTrain, PseudoLabels, TopK, training_confidence
from legnn.training.task import Task

if TYPE_CHECKING:
    from legnn.training.layer_wise import LayerWise
    from legnn.training.mini_batch import MiniBatch, can_capture

# full batches do without sampling, and a new run without predicting layer by layer
__getattr__ = lazy_names(__name__, {"layer_wise": "LayerWise", "mini_batch": "MiniBatch can_capture"})

__all__ = [
    "METRICS",
    "ASTrain",
    "Agreement",
    "Batching",
    "DevicePlan",
    "EpochLog",
    "FullBatch",
    "Inference",
    "LayerWise",
    "Metric",
    "MiniBatch",
    "Objective",
    "PostProcess",
    "PseudoLabels",
    "Ranks",
    "Scores",
    "Task",
    "TopK",
    "Trainer",
    "assign_folds",
    "balanced_class_weight",
    "can_capture",
    "choosing_metrics",
    "make_adam",
    "predict_without_own_label",
    "require_metric",
    "require_staged",
    "score",
    "split_by_fold",
    "title_of",
    "training_confidence",
]
