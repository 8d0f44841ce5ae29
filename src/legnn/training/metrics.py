"""Metrics of predicted nodes, one class each, and the metrics logged after each epoch.

Scores are a mapping from the name of a metric to its value: in results, epoch logs, tables, progress and on the page.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.errors import InputError, did_you_mean

Metrics = dict[str, Tensor]
"""Scalars by name, NaN where there is no value. Those of a captured step are overwritten by the next."""

Scores = dict[str, float]
"""Scores by the name of their metric; one that is not defined for the nodes, such as AUC for one class, is missing."""

CALIBRATION_BINS = 15

VALIDATION = "val/"
"""Prefix of the scores of validation nodes among the metrics of an epoch."""


class Metric(ABC):
    """A score of predicted nodes. A new one is a subclass, of which an object is in `METRICS`."""

    name: ClassVar[str]
    title: ClassVar[str]
    """Heading in tables and on the page."""
    larger_is_better: ClassVar[bool] = True
    needs_probabilities: ClassVar[bool] = False
    can_choose: ClassVar[bool] = True
    """Whether it depends on the predictions, so that it can choose an epoch."""

    @abstractmethod
    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        """Returns the score, a scalar; NaN only if `y` alone leaves it undefined, since it then cannot choose an epoch.

        Args:
            predicted: `[n, C]` probabilities if the metric needs them, else `[n]` classes; `n` is at least 1.
            y: `[n]` the true classes.
            num_classes: `C`.
        """


class Accuracy(Metric):
    """The share of nodes whose predicted class is the true one."""

    name, title = "accuracy", "accuracy"

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        return (predicted == y).double().mean()


class MajorityAccuracy(Metric):
    """The accuracy of predicting the most frequent class everywhere, which any model should exceed."""

    name, title, can_choose = "majority_accuracy", "accuracy of the majority class", False

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        return _count(y, num_classes).max().double() / y.numel()


class BalancedAccuracy(Metric):
    """The mean recall of the classes that occur in `y`."""

    name, title = "balanced_accuracy", "balanced accuracy"

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        support = _count(y, num_classes)
        recall = _count(y, num_classes, predicted == y).double() / support.clamp(min=1)
        return recall.sum() / (support > 0).sum()


class MacroF1(Metric):
    """The mean F1 of the classes that occur in `y` or `predicted`: `F1_c = 2 TP_c / (2 TP_c + FP_c + FN_c)`."""

    name, title = "macro_f1", "macro-F1"

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        either = _count(y, num_classes) + _count(predicted, num_classes)
        # a class that does not occur adds 0 / 1 and is not counted
        f1 = (2 * _count(y, num_classes, predicted == y)).double() / either.clamp(min=1)
        return f1.sum() / (either > 0).sum()


class ROCAUC(Metric):
    """The probability that a node of a class ranks above one of another class, ties counting one half.

    Of the rarer class for two classes, else the mean over the classes that occur in `y`.
    """

    name, title, needs_probabilities = "roc_auc", "ROC-AUC", True

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        def area(positive: Tensor, negative: Tensor) -> Tensor:
            # of each positive the negatives with a lower score, and half of those with the same
            below = negative.sum() - negative.cumsum(0) + negative / 2
            return (positive * below).sum() / (positive.sum() * negative.sum())

        return _mean_over_classes(predicted, y, area)


class AveragePrecision(Metric):
    """The area under the curve of precision over recall: `Σ_k (R_k - R_{k-1}) P_k` over the distinct scores.

    Of the rarer class for two classes, else the mean over the classes that occur in `y`.
    """

    name, title, needs_probabilities = "average_precision", "average precision", True

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        def area(positive: Tensor, negative: Tensor) -> Tensor:
            hits = positive.cumsum(0)
            return (positive * hits / (hits + negative.cumsum(0))).sum() / positive.sum()

        return _mean_over_classes(predicted, y, area)


class LogLoss(Metric):
    """The mean of `-log p` of the true class."""

    name, title, larger_is_better, needs_probabilities = "log_loss", "log loss", False, True

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        p = predicted.gather(1, y[:, None]).double()
        return -p.clamp(min=torch.finfo(torch.float32).tiny).log().mean()


class BrierScore(Metric):
    """The mean of `Σ_c (p_c - [y = c])²`: 0 for certainty in the right class, 2 for certainty in a wrong one."""

    name, title, larger_is_better, needs_probabilities = "brier", "Brier score", False, True

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        p = predicted.double()
        # Σ_c (p_c - [y = c])² = Σ_c p_c² - 2 p_y + 1, without a matrix of one-hot rows
        return (p.square().sum(1) - 2 * p.gather(1, y[:, None])[:, 0] + 1).mean()


class CalibrationError(Metric):
    """`Σ_b n_b/n |accuracy_b - confidence_b|` over bins `(low, high]` of equal width of the confidence."""

    name, title, larger_is_better, needs_probabilities = "ece", "calibration error (ECE)", False, True

    def __call__(self, predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
        confidence, classes = predicted.double().max(-1)
        edges = torch.linspace(0, 1, CALIBRATION_BINS + 1, dtype=torch.double, device=y.device)[1:-1]
        gap = (classes == y).double() - confidence
        # sorted by bin, so that sums do not depend on the order of threads
        bins, order = torch.bucketize(confidence, edges).sort(stable=True)
        sums = torch.segment_reduce(gap[order], "sum", lengths=_count(bins, CALIBRATION_BINS))
        return sums.abs().sum() / y.numel()


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Accuracy(),
        MajorityAccuracy(),
        BalancedAccuracy(),
        MacroF1(),
        ROCAUC(),
        AveragePrecision(),
        LogLoss(),
        BrierScore(),
        CalibrationError(),
    )
}
"""The registered metrics by name, in the order of tables."""


def _count(classes: Tensor, num_classes: int, mask: Tensor | None = None) -> Tensor:
    """`[C]` how many of `classes` `[n]` are each class, or how many of those in `mask`."""
    weights = torch.ones_like(classes) if mask is None else mask.long()
    # sums of integers do not depend on their order: deterministic on every device
    return torch.zeros(num_classes, dtype=torch.long, device=classes.device).index_add(0, classes, weights)


def _mean_over_classes(p: Tensor, y: Tensor, area: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The mean of `area` over classes, of the rarer one for two; NaN if no class has both nodes in it and others.

    `area` gets how many nodes of the class have each distinct score, from the largest down, and how many others.
    """
    support = _count(y, p.size(1))
    classes = ((support > 0) & (support < y.numel())).nonzero().flatten()
    if p.size(1) == 2 and classes.numel():
        # of two equally frequent classes the second, as scikit-learn's positive class
        classes = (support <= support.flip(0)).nonzero().flatten()[-1:]
    areas = []
    for c in classes:
        _, level = (-p[:, c]).unique(return_inverse=True)
        size = int(level.max()) + 1
        positive = _count(level, size, y == c).double()
        areas.append(area(positive, _count(level, size).double() - positive))
    return torch.stack(areas).mean() if areas else torch.full((), math.nan, device=y.device)


def choosing_metrics() -> list[str]:
    """Returns the names of the metrics that can choose an epoch."""
    return [name for name, metric in METRICS.items() if metric.can_choose]


def require_metric(name: str) -> Metric:
    """Returns the metric of a name; raises `InputError` for one that is unknown or cannot choose an epoch."""
    names = choosing_metrics()
    if name not in names:
        raise InputError(
            f"choose_by must be one of {', '.join(names)}, got {name!r}{did_you_mean(name, names)}",
            setting="train.choose_by",
        )
    return METRICS[name]


def title_of(name: str) -> str:
    """Returns the title of a metric; its name if it is not registered here."""
    return METRICS[name].title if name in METRICS else name


def compute(p: Tensor, y: Tensor, names: Iterable[str]) -> Metrics:
    """The metrics `names` of nodes of the classes `y` `[n]` with the probabilities `p` `[n, C]`, as tensors."""
    classes = p.argmax(-1)
    metrics = {name: METRICS[name] for name in names}
    return {name: m(p if m.needs_probabilities else classes, y, p.size(1)) for name, m in metrics.items()}


def score(p: Tensor, y: Tensor) -> Scores | None:
    """Every score of nodes of the classes `y` `[n]` with the probabilities `p` `[n, C]`; None for no nodes."""
    if y.numel() == 0:
        return None
    values = {name: float(value) for name, value in compute(p, y, METRICS).items()}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def validation_metrics(logits: Tensor, y: Tensor, choose_by: str) -> Metrics:
    """Metrics of validation nodes after an epoch: accuracy, the metric that chooses, and the mean cross-entropy."""
    scores = compute(logits.float().softmax(-1), y, dict.fromkeys(("accuracy", choose_by)))
    loss = F.cross_entropy(logits.float(), y)
    return {"val_loss": loss} | {f"{VALIDATION}{name}": value for name, value in scores.items()}


LOSS_TERMS = ("supervised_loss", "pseudo_loss")
"""The terms of the training loss, as they are logged: weights included."""

SUMS = ("supervised_loss", "hits", "pseudo_loss", "pseudo_labels", "known_pseudo_labels", "right_pseudo_labels")
"""Sums over the steps of an epoch, as one vector: nodes are counted, losses added up."""


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
