"""Metrics: plain functions of predictions and classes, and those of an epoch as a mapping from name to value.

None of them synchronizes with the device: the loop reads all numbers of an epoch in one transfer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Metrics = dict[str, Tensor]
"""Scalars by name, NaN where there is no value. Those of a captured step are overwritten by the next."""


@dataclass(frozen=True)
class Scores:
    """How well a set of nodes is predicted."""

    accuracy: float
    macro_f1: float


def accuracy(predicted: Tensor, y: Tensor) -> Tensor:
    """The share of the classes `predicted` `[n]` that are `y` `[n]`; NaN for `n = 0`."""
    return (predicted == y).sum().double() / y.numel()


def macro_f1(predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """The mean F1 of the classes that occur in `y` or `predicted`, both `[n]`; NaN for `n = 0`.

    `F1_c = 2 TP_c / (2 TP_c + FP_c + FN_c)`. Equal to scikit-learn's, in double precision.
    """

    def count(classes: Tensor, counted: Tensor) -> Tensor:
        # sums of integers do not depend on their order: deterministic on every device
        return torch.zeros(num_classes, dtype=torch.long, device=y.device).index_add(0, classes, counted)

    hits, ones = (predicted == y).long(), torch.ones_like(y)
    right, either = count(y, hits), count(y, ones) + count(predicted, ones)
    # a class that does not occur adds 0 / 1 and is not counted
    f1 = (2 * right).double() / either.clamp(min=1)
    return f1.sum() / (either > 0).sum()


def score(predicted: Tensor, y: Tensor, num_classes: int) -> Scores | None:
    """Accuracy and macro-F1 as numbers; None for no nodes."""
    if y.numel() == 0:
        return None
    return Scores(accuracy(predicted, y).item(), macro_f1(predicted, y, num_classes).item())


def evaluate(logits: Tensor, y: Tensor) -> Metrics:
    """Accuracy, macro-F1 and mean cross-entropy of `logits` `[n, C]` for the classes `y` `[n]`."""
    predicted = logits.argmax(-1)
    return {
        "accuracy": accuracy(predicted, y),
        "macro_f1": macro_f1(predicted, y, logits.size(1)),
        "loss": F.cross_entropy(logits.float(), y),
    }


LOSS_TERMS = ("supervised_loss", "pseudo_loss")
"""The terms of the training loss, as they are logged: weights included."""

SUMS = ("supervised_loss", "hits", "pseudo_loss", "pseudo_labels", "known_pseudo_labels", "right_pseudo_labels")
"""What is summed over the steps of an epoch, as one vector: nodes are counted, losses added up."""


def stack_sums(sums: Mapping[str, Tensor], device: torch.device) -> Tensor:
    """The vector of `SUMS` in double precision; zero where `sums` has none."""
    zero = torch.zeros((), dtype=torch.double, device=device)
    return torch.stack([sums[name].detach().double() if name in sums else zero for name in SUMS])


def training_metrics(sums: Tensor, num_predicted: int, pseudo_steps: int, *, self_training: bool) -> Metrics:
    """The metrics of an epoch of training.

    Args:
        sums: the vector of `SUMS`, added up over the steps of the epoch.
        num_predicted: nodes that were predicted.
        pseudo_steps: steps that had pseudo labels.
        self_training: whether there could be pseudo labels.
    """
    total = dict(zip(SUMS, sums.unbind(), strict=True))
    nan = torch.full_like(sums[0], math.nan)
    accuracy = total["right_pseudo_labels"] / total["known_pseudo_labels"]
    return {
        "supervised_loss": total["supervised_loss"] / num_predicted,
        "pseudo_loss": total["pseudo_loss"] / max(pseudo_steps, 1),
        "train_accuracy": total["hits"] / num_predicted,
        "pseudo_labels": total["pseudo_labels"] if self_training else nan,
        "pseudo_label_accuracy": accuracy if self_training else nan,
    }


def to_numbers(metrics: Mapping[str, Tensor], device: torch.device) -> dict[str, float | None]:
    """The values of `metrics`, read in one transfer from `device`; None for NaN."""
    values = torch.stack([value.double().to(device) for value in metrics.values()]).tolist()
    return {name: None if math.isnan(value) else value for name, value in zip(metrics, values, strict=True)}
