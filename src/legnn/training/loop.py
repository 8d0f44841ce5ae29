"""The one training loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from legnn.errors import InputError
from legnn.training.batching import Batching
from legnn.training.metrics import (
    LOSS_TERMS,
    VALIDATION,
    Metrics,
    Scores,
    require_metric,
    to_numbers,
    validation_metrics,
)
from legnn.training.optimizer import CosineSchedule

Ties = Literal["loss", "latest"]
"""Which of equally good epochs is the best: the one with the smaller loss, or the latest."""


@dataclass
class EarlyStopping:
    """Keeps the best epoch by a score of validation, such as its accuracy; without validation, the latest."""

    patience: int
    ties: Ties = "loss"
    best_epoch: int = 0
    best_score: float = -math.inf
    best_loss: float = math.inf

    def improves(self, epoch: int, score: float | None, loss: float | None) -> bool:
        """Record an epoch; returns whether it is the best so far."""
        if score is None or loss is None:
            self.best_epoch = epoch
            return True
        better = score > self.best_score
        if score == self.best_score:
            better = self.ties == "latest" or loss < self.best_loss
        if better:
            self.best_epoch, self.best_score, self.best_loss = epoch, score, loss
        return better

    def is_over(self, epoch: int) -> bool:
        """Whether no epoch was better for `patience` epochs."""
        return epoch - self.best_epoch >= self.patience


@dataclass(frozen=True)
class EpochLog:
    """A line of `metrics.jsonl`."""

    epoch: int
    epochs: int
    """The most there can be."""
    lr: float
    """Learning rate of the last step."""
    loss: float
    supervised_loss: float
    pseudo_loss: float
    train_accuracy: float | None
    """Accuracy of the nodes predicted in this epoch, whose labels were hidden; null where selection is off."""
    val: Scores
    """The accuracy of the validation nodes and the metric that chooses the best epoch; empty without such nodes."""
    val_loss: float | None
    """Null without validation nodes."""
    training_confidence: float | None
    pseudo_labels: int | None
    pseudo_label_accuracy: float | None


class Trainer:
    """The state of a training run, and the loop over epochs.

    Args:
        lr: the learning rate of the first step.
        epochs: the most there can be.
        patience: epochs without a better one before training stops.
        cosine_steps: steps of the optimizer over which the learning rate falls, or epoch by epoch over all `epochs`.
        choose_by: the name of the metric of validation by which an epoch is the best.
        ties: which of equally good epochs is the best.
        generators: that the run draws from, by name, in addition to that of `batching`; a checkpoint has their states.
    """

    def __init__(
        self,
        batching: Batching,
        *,
        lr: float,
        epochs: int,
        patience: int,
        cosine_steps: int | Literal["epochs"] = "epochs",
        choose_by: str = "accuracy",
        ties: Ties = "loss",
        generators: Mapping[str, Generator] | None = None,
    ) -> None:
        self.batching, self.model, self.device = batching, batching.model, batching.device
        self.optimizer = batching.optimizer
        self.generators = {"selection": batching.generator, **(generators or {"cpu": torch.default_generator})}
        # one epoch scores a model without parameters, and more would change nothing
        self.epochs = epochs if any(True for _ in self.model.parameters()) else 1
        length = self.epochs if cosine_steps == "epochs" else cosine_steps
        self.schedule = CosineSchedule(self.optimizer, lr, length, by_step=cosine_steps != "epochs")
        train = batching.task.train
        self.shown_at_inference = train if self.model.uses_labels else train[:0]
        self.epoch = 0
        self.choose_by = require_metric(choose_by)
        self.stopper = EarlyStopping(patience, ties)
        self.best = _copy(self.model.state_dict())
        """The weights after the best epoch so far."""

    def fit(self, after_epoch: Callable[[EpochLog], bool | None] = lambda log: None) -> None:
        """Train until the epochs are over, validation stops improving, or `after_epoch` returns True.

        `after_epoch` gets the metrics of every epoch, for logs, checkpoints and interruption.

        Nothing here learns or selects from test labels; the accuracy of pseudo labels, which is logged where the truth
        is known, is for the reader.
        """
        for epoch in range(self.epoch + 1, self.epochs + 1):
            if self.stopper.is_over(epoch - 1):
                break
            metrics = self.train_epoch() | self.validate()
            log = self._log(to_numbers(metrics, self.device))
            if self.stopper.improves(log.epoch, self._val_score(log), log.val_loss):
                self.best = _copy(self.model.state_dict())
            if after_epoch(log):
                break
        self.batching.reset()

    def train_epoch(self) -> Metrics:
        """Train for one epoch more, without validation."""
        self.epoch += 1
        self.schedule.before_epoch(self.epoch)
        return self.batching.train_epoch(self.epoch, self.schedule.before_step)

    def validate(self) -> Metrics:
        """The metrics of the validation nodes; none if there are no such nodes."""
        task = self.batching.task
        if not task.val.numel():
            return {}
        logits = self.batching.validate(self.shown_at_inference)
        return validation_metrics(logits, task.val_y, self.choose_by.name)

    def _val_score(self, log: EpochLog) -> float | None:
        """The score that chooses the best epoch, larger for a better one; None without validation nodes."""
        if not log.val:
            return None
        name = self.choose_by.name
        if name not in log.val:
            raise InputError(f"{name} is not defined for these validation nodes; choose another metric by `choose_by`")
        return log.val[name] if self.choose_by.larger_is_better else -log.val[name]

    def _log(self, metrics: dict[str, float | None]) -> EpochLog:
        """The log of this epoch; raises `InputError` if training has diverged."""
        losses = [metrics[name] for name in (*LOSS_TERMS, "val_loss") if name in metrics]
        if not all(value is not None and math.isfinite(value) for value in losses):
            raise InputError(
                f"the loss is no longer a number in epoch {self.epoch}; a smaller `train.lr` (now "
                f"{self.schedule.lr:g}) or `model.norm=layer` usually helps"
            )
        pseudo_labels = metrics["pseudo_labels"]
        scores = {name: metrics.pop(name) for name in list(metrics) if name.startswith(VALIDATION)}
        val = {name.removeprefix(VALIDATION): value for name, value in scores.items() if value is not None}
        values: dict[str, Any] = {"val": val, "val_loss": None} | metrics
        return EpochLog(
            epoch=self.epoch,
            epochs=self.epochs,
            lr=self.schedule.current,
            loss=sum(values[name] for name in LOSS_TERMS),
            training_confidence=self.batching.objective.confidence(self.epoch),
            **values | {"pseudo_labels": None if pseudo_labels is None else int(pseudo_labels)},
        )

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that the rest of the run depends on, as tensors and JSON-able numbers."""
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self.best.items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer/{key}/{name}"] = value
        tensors |= {f"random/{name}": generator.get_state() for name, generator in self.generators.items()}
        return tensors, {"epoch": self.epoch, "steps": self.schedule.steps, "stopper": asdict(self.stopper)}

    def load_state(self, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        """Restore `state()`: training continues as it would have from there."""
        selection = self.generators["selection"]
        if tensors["random/selection"].numel() != selection.get_state().numel():
            kind = str(selection.device).partition(":")[0]
            raise InputError(
                f"the checkpoint was not written on this kind of device ({kind}), which draws other random numbers; "
                f"resume where the run was started, or start a new one with `train.device={kind}`"
            )
        self.model.load_state_dict(_under("model/", tensors))
        self.best = {name: value.to(self.device) for name, value in _under("best/", tensors).items()}
        for name, parameter in self.model.named_parameters():
            for key in ("step", "exp_avg", "exp_avg_sq"):
                value = tensors.get(f"optimizer/{key}/{name}")
                if value is not None:
                    # fused, Adam counts its steps on the device of the parameter
                    self.optimizer.state[parameter][key] = value.to(parameter.device)
        for name, generator in self.generators.items():
            generator.set_state(tensors[f"random/{name}"])
        self.epoch, self.schedule.steps = meta["epoch"], meta["steps"]
        self.stopper = EarlyStopping(**meta["stopper"])
        # a step that was captured before would continue with the old state of the optimizer
        self.batching.reset()


def _copy(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in tensors.items()}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
