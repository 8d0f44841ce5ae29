"""Full batch: one step an epoch, over the whole graph at once."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.optim import Optimizer

from legnn.graph import TrainingNodeSelection, select_training_nodes
from legnn.nn import LEGNN
from legnn.training.as_train import PseudoLabels, pseudo_label_loss, select_pseudo_labels, training_confidence
from legnn.training.batching import Step
from legnn.training.settings import ASTrain
from legnn.training.task import Task


class FullBatch:
    """Trains on, and predicts, the whole graph in one forward pass."""

    def __init__(
        self,
        model: LEGNN,
        task: Task,
        optimizer: Optimizer,
        generator: Generator,
        *,
        alpha: float,
        selection: bool,
        shows_labels: bool,
        as_train: ASTrain | None,
    ) -> None:
        self.model, self.task, self.optimizer, self.generator = model, task, optimizer, generator
        self.alpha, self.selection, self.shows_labels, self.as_train = alpha, selection, shows_labels, as_train
        self.x = model.features(task.x)

    def train_epoch(self, epoch: int) -> Step:
        """Select training nodes, predict, add AS-Train's part, and take one step."""
        predicted, shown = self._select()
        self.model.train()
        logits = self.model(self.x, self.task.show(shown))
        truth = self.task.y[predicted]
        supervised = F.cross_entropy(logits[predicted], truth)
        confidence, pseudo = self._pseudo_labels(logits, epoch)
        pseudo_loss = torch.zeros_like(supervised)
        if self.as_train is not None and pseudo is not None and confidence is not None:
            pseudo_loss = pseudo_label_loss(logits, pseudo, confidence, self.as_train.weight)
        self.optimizer.zero_grad(set_to_none=True)
        (supervised + pseudo_loss).backward()
        self.optimizer.step()

        leaks = self.shows_labels and not self.selection
        with torch.no_grad():
            accuracy = None if leaks else (logits[predicted].argmax(-1) == truth).float().mean()
        return Step(
            supervised.detach(),
            pseudo_loss.detach(),
            accuracy,
            confidence,
            None if pseudo is None else pseudo.nodes.numel(),
            None if pseudo is None else self._accuracy(pseudo),
        )

    @torch.no_grad()
    def logits(self, shown: Tensor) -> Tensor:
        """`[M, C]` in evaluation mode, with the labels of exactly the nodes `shown` in the graph."""
        self.model.eval()
        out: Tensor = self.model(self.x, self.task.show(shown))
        return out

    def _select(self) -> TrainingNodeSelection:
        train = self.task.train
        if not self.shows_labels:
            return TrainingNodeSelection(predicted=train, shown=train[:0])
        if not self.selection:
            return TrainingNodeSelection(predicted=train, shown=train)
        return select_training_nodes(train, self.alpha, self.generator)

    def _pseudo_labels(self, logits: Tensor, epoch: int) -> tuple[float | None, PseudoLabels | None]:
        if self.as_train is None:
            return None, None
        confidence = training_confidence(epoch, self.as_train.delta) if self.as_train.use_tc else 1.0
        return confidence, select_pseudo_labels(logits, self.task.candidates, confidence, self.as_train)

    def _accuracy(self, pseudo: PseudoLabels) -> Tensor | None:
        truth = self.task.y[pseudo.nodes]
        known = truth >= 0
        return (pseudo.y == truth)[known].float().mean() if bool(known.any()) else None
