"""The one training loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.ops.runtime.generators import random_states, set_random_states
from legnn.training.early_stopping import EarlyStopping, Ties
from legnn.training.in_flight import Burst, InFlight, Launched, ToHost, Weights
from legnn.training.protocols import Batching, TrainMetrics, ValMetrics
from legnn.training.schedule import CosineSchedule
from legnn.training.sharing import Steps, finish, others_begin

METRICS = (*TrainMetrics._fields, *(f"val_{name}" for name in ValMetrics._fields))
"""What an epoch is logged with, in the order of `Batching.run_epoch`."""

ChooseBy = Literal["accuracy", "macro_f1", "loss"]
"""The metric of validation by which an epoch is the best."""


@dataclass(frozen=True)
class EpochLog:
    """A line of `metrics.jsonl`."""

    epoch: int
    epochs: int
    """The most there can be."""
    lr: float
    """Of its last step."""
    loss: float
    supervised_loss: float
    pseudo_loss: float
    train_accuracy: float | None
    """Of the nodes predicted in this epoch, whose labels were hidden; null where selection is off."""
    val_accuracy: float | None
    val_macro_f1: float | None
    val_loss: float | None
    """Null without validation nodes."""
    training_confidence: float | None
    pseudo_labels: int | None
    pseudo_label_accuracy: float | None

    def val_score(self, by: ChooseBy) -> float | None:
        """The metric of validation that an epoch is chosen by, larger for a better epoch."""
        if by == "loss":
            return None if self.val_loss is None else -self.val_loss
        return self.val_macro_f1 if by == "macro_f1" else self.val_accuracy


class Trainer:
    """The state of a training run, and the loop over epochs.

    Args:
        lr: the learning rate of the first step.
        epochs: the most there can be.
        patience: epochs without a better one before training stops.
        cosine_steps: steps of the optimizer over which the learning rate falls, or epoch by epoch over all `epochs`.
        choose_by: the metric of validation by which an epoch is the best.
        ties: which of equally good epochs is kept.
    """

    def __init__(
        self,
        batching: Batching,
        *,
        lr: float,
        epochs: int,
        patience: int,
        cosine_steps: int | Literal["epochs"] = "epochs",
        choose_by: ChooseBy = "accuracy",
        ties: Ties = "loss",
    ) -> None:
        self.batching, self.model, self.device = batching, batching.model, batching.device
        self.optimizer, self.generator = batching.optimizer, batching.generator
        # one epoch scores a model without parameters, and more would change nothing
        self.epochs = epochs if any(True for _ in self.model.parameters()) else 1
        length = self.epochs if cosine_steps == "epochs" else cosine_steps
        self.schedule = CosineSchedule(lr, length, by_step=cosine_steps != "epochs")
        batching.before_step = self.schedule.before_step
        train = batching.task.train
        self.shown_at_inference = train if self.model.uses_labels else train[:0]
        self.epoch = 0
        self.choose_by = choose_by
        self.stopper = EarlyStopping(patience, ties)
        self._keep(_copy(self.model.state_dict()))

    def fit(self, after_epoch: Callable[[EpochLog], bool | None] = lambda log: None) -> None:
        """Train until the epochs are over, validation stops improving, or `after_epoch` returns True.

        Nothing here learns or chooses from test labels; the accuracy of pseudo labels, which is logged where the truth
        is known, is for the reader.
        """
        finish(self.steps(after_epoch))

    def steps(
        self,
        after_epoch: Callable[[EpochLog], bool | None],
        *,
        wants_rest: Callable[[], bool] = lambda: False,
        at_rest: Callable[[], bool | None] = lambda: None,
    ) -> Steps[None]:
        """`fit`, with a pause after launches: others may launch something meanwhile.

        On a GPU the next epochs may be in flight when `after_epoch` is called. Those after the last one are dropped:
        `epoch` and `best` are as if they had never been launched; weights and optimizer are not.

        Args:
            after_epoch: called with the log of every epoch, in order; True ends training.
            wants_rest: True keeps further epochs from being launched until none is in flight.
            at_rest: called whenever none is and none was dropped: `state` is that of the last log. True ends training.
        """
        flight = InFlight(self.device)
        last = self.epoch if self.stopper.is_over(self.epoch) else None
        try:
            while True:
                has_launched = False
                while last is None and (number := self._room(flight, wants_rest)):
                    flight.add(self._launch(number, flight.begin()))
                    has_launched = True
                if not flight:
                    break
                yield
                # who could launch something does not wait, nor does anyone while other runs are yet to begin
                for burst in flight.finished(wait=not has_launched and not others_begin()):
                    last = self._read(burst, after_epoch)
                    if last is not None:
                        flight.clear()
                if last is not None and last < self.epoch:
                    # later epochs were launched in vain
                    self.epoch = last
                    break
                if not flight and at_rest():
                    break
        finally:
            # also after an error: what an epoch in flight reads is not freed
            flight.clear()
        self.batching.reset()

    def _room(self, flight: InFlight, wants_rest: Callable[[], bool]) -> int:
        """How many epochs may be launched now."""
        ring = self.batching.ring
        number = flight.room(ring) if self.epoch < self.epochs else 0
        if number and ring is not None and wants_rest():
            return 0 if flight else 1
        return number

    def train_epoch(self) -> TrainMetrics:
        """Train for one epoch more, without validation."""
        self._begin_epoch()
        return self.batching.train_epoch(self.epoch)

    def _begin_epoch(self) -> None:
        self.epoch += 1
        self.batching.set_lr(self.schedule.before_epoch(self.epoch))

    def _launch(self, number: int, begin: torch.cuda.Event | None) -> Burst:
        """Launch at most `number` epochs; one where the first is not captured."""
        batching, epochs = self.batching, []
        shown = self.shown_at_inference if batching.task.val.numel() else None
        for _ in range(min(number, self.epochs - self.epoch)):
            self._begin_epoch()
            metrics = batching.run_epoch(self.epoch, shown)
            ring = batching.ring
            epochs.append(Launched(self.epoch, self.schedule.current, None if ring is None else ring.last))
        return Burst(begin, epochs, ToHost(metrics[None]) if ring is None else ring.metrics())

    def _read(self, burst: Burst, after_epoch: Callable[[EpochLog], bool | None]) -> int | None:
        """Notes the epochs of a burst and the best weights; returns the epoch with which training ends, if it does."""
        best: Launched | None = None
        last: int | None = None
        for launched, numbers in burst.read():
            log = self._log(launched, numbers)
            if self.stopper.improves(log.epoch, log.val_score(self.choose_by), log.val_loss):
                best = launched
            if after_epoch(log) or self.stopper.is_over(log.epoch):
                last = log.epoch
                break
        if best is not None:
            self._keep_after(best)
        return last

    @property
    def best(self) -> Weights:
        """The weights after the best epoch so far."""
        return self._best()

    def _keep(self, weights: Weights) -> None:
        self._best: Callable[[], Weights] = lambda: weights

    def _keep_after(self, launched: Launched) -> None:
        ring = self.batching.ring
        if launched.row is None or ring is None:
            self._keep(_copy(self.model.state_dict()))
        else:
            self._best = ring.weights(launched.row)

    def _log(self, launched: Launched, numbers: list[float]) -> EpochLog:
        found: dict[str, Any] = {name: None if math.isnan(v) else v for name, v in zip(METRICS, numbers, strict=False)}
        # no validation nodes, no numbers of them
        found |= dict.fromkeys(METRICS[len(found) :])
        losses = [found["supervised_loss"], found["pseudo_loss"]]
        if self.batching.task.val.numel():
            losses.append(found["val_loss"])
        if None in losses or math.isinf(sum(losses)):
            raise InputError(
                f"the loss is no longer a number in epoch {launched.epoch}; a smaller `lr` (now {self.schedule.lr:g}) "
                "or `norm=layer` usually helps"
            )
        if found["pseudo_labels"] is not None:
            found["pseudo_labels"] = int(found["pseudo_labels"])
        return EpochLog(
            epoch=launched.epoch,
            epochs=self.epochs,
            lr=launched.lr,
            loss=losses[0] + losses[1],
            training_confidence=self.batching.objective.confidence(launched.epoch),
            **found,
        )

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that the rest of the run depends on, as tensors and JSON-able numbers."""
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self.best.items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer/{key}/{name}"] = value
        tensors["random/selection"] = self.generator.get_state()
        tensors |= {f"random/{kind}": value for kind, value in random_states(self.device).items()}
        if self.batching.draws is not None:
            tensors["random/steps"] = self.batching.draws
        return tensors, {"epoch": self.epoch, "steps": self.schedule.steps, "stopper": asdict(self.stopper)}

    def load_state(self, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        """Restore `state()`: training continues as it would have from there."""
        if tensors["random/selection"].numel() != self.generator.get_state().numel():
            kind = self.generator.device.type
            raise InputError(
                f"the checkpoint was not written on this kind of device ({kind}), which draws other random numbers; "
                f"resume where the run was started, or start a new one with `device={kind}`"
            )
        self.model.load_state_dict(_under("model/", tensors))
        self._keep({name: value.to(self.device) for name, value in _under("best/", tensors).items()})
        for name, parameter in self.model.named_parameters():
            for key in ("step", "exp_avg", "exp_avg_sq"):
                value = tensors.get(f"optimizer/{key}/{name}")
                if value is not None:
                    # fused, Adam counts its steps on the device of the parameter
                    self.optimizer.state[parameter][key] = value.to(parameter.device)
        self.generator.set_state(tensors["random/selection"])
        set_random_states(_under("random/", tensors), self.device)
        if self.batching.draws is not None:
            self.batching.load_draws(tensors["random/steps"])
        self.epoch, self.schedule.steps = meta["epoch"], meta["steps"]
        self.stopper = EarlyStopping(**meta["stopper"])
        # a step that was captured before would continue with the old state of the optimizer
        self.batching.reset()


def _copy(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in tensors.items()}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
