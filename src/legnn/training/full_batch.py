"""Full batch: one step an epoch, over the whole graph at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.optim import Optimizer

from legnn.config import SelfTrainingSettings
from legnn.graph import LabelGraph, TrainingNodeSelection, select_training_nodes
from legnn.nn import LEGNN
from legnn.training.as_train import (
    pseudo_label_accuracy,
    pseudo_label_loss,
    select_pseudo_labels,
    training_confidence,
)
from legnn.training.batching import Step, Validation, class_and_confidence
from legnn.training.cuda_graph import CudaGraphs, Replay
from legnn.training.metrics import measure
from legnn.training.optimizer import reads_lr_from_device
from legnn.training.task import Task


class _Kept(NamedTuple):
    """What does not change as long as the same nodes show their labels."""

    shown: Tensor
    graph: LabelGraph
    """What it keeps of itself (degrees, counts, labels by class) is most of the work of making one."""
    validation: Replay
    logits: Replay


class FullBatch:
    """Trains on, and predicts, the whole graph in one forward pass.

    On a GPU the step and the validation are captured as CUDA graphs after a few epochs (`cuda_graphs`): they read the
    nodes of the epoch, `TC` and the learning rate from tensors that are written to before. Results are the same to the
    bit. `dtype` is that of the features; the model computes in it.
    """

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
        as_train: SelfTrainingSettings | None,
        dtype: torch.dtype = torch.float32,
        cuda_graphs: bool = True,
    ) -> None:
        self.model, self.task, self.optimizer, self.generator = model, task, optimizer, generator
        self.alpha, self.selection, self.shows_labels, self.as_train = alpha, selection, shows_labels, as_train
        self.cuda_graphs = cuda_graphs
        self.x = model.features(task.x, dtype, task.node_type)
        self._confidence = torch.ones((), device=task.x.device)
        self._nodes: TrainingNodeSelection | None = None
        self._same: LabelGraph | None = None
        if not (shows_labels and selection):
            # the same nodes in every epoch, and the same graph
            train = task.train
            self._nodes = TrainingNodeSelection(predicted=train, shown=train if shows_labels else train[:0])
            self._same = task.show(self._nodes.shown)
        self.reset()

    def train_epoch(self, epoch: int) -> Step:
        """Select training nodes, predict, add AS-Train's part, and take one step."""
        self._place(self._select())
        confidence = None
        if self.as_train is not None:
            confidence = training_confidence(epoch, self.as_train.delta) if self.as_train.use_tc else 1.0
            self._confidence.fill_(confidence)
        supervised, pseudo_loss, accuracy, count, pseudo_accuracy = self._training.run(self._step).unbind()
        leaks = self.shows_labels and not self.selection
        return Step(
            supervised_loss=supervised,
            pseudo_loss=pseudo_loss,
            train_accuracy=None if leaks else accuracy,
            training_confidence=confidence,
            pseudo_labels=None if self.as_train is None else count,
            pseudo_label_accuracy=None if self.as_train is None else pseudo_accuracy,
        )

    def validate(self, shown: Tensor) -> Validation:
        """Score the validation nodes, with the labels of exactly the nodes `shown` in the graph.

        `shown` is known again by the object it is, so its contents must not change.
        """
        kept = self._keep(shown)
        return Validation(*kept.validation.run(lambda: self._measure(kept.graph)).unbind())

    def logits(self, shown: Tensor) -> Tensor:
        """`[M, C]` in evaluation mode, with the labels of exactly the nodes `shown` in the graph.

        `shown` is known again by the object it is, so its contents must not change.
        """
        kept = self._keep(shown)
        # the caller's own: what a captured step gives is overwritten
        return kept.logits.run(lambda: self._logits(kept.graph)).clone()

    def predict(self, shown: Tensor, nodes: Tensor) -> Tensor:
        """`[n, 2]` class and confidence of `nodes`, with the labels of exactly the nodes `shown` in the graph."""
        return class_and_confidence(self.logits(shown).index_select(0, nodes))

    def reset(self) -> None:
        """Let go of the captured steps and their memory; what follows is captured anew."""
        self.optimizer.zero_grad(set_to_none=True)
        self._graphs = CudaGraphs(self.task.x.device, enabled=self.cuda_graphs)
        if self._graphs.on and not reads_lr_from_device(self.optimizer):
            self._graphs.give_up("its optimizer keeps the learning rate on the host (make_adam's does not)")
        self._training = Replay(self._graphs)
        self._kept: _Kept | None = None

    def _select(self) -> TrainingNodeSelection:
        if self._same is not None and self._nodes is not None:
            return self._nodes
        return select_training_nodes(self.task.train, self.alpha, self.generator)

    def _place(self, selected: TrainingNodeSelection) -> None:
        """Put the nodes of this epoch where the step reads them."""
        if self._nodes is None:
            self._nodes = selected
        elif selected is not self._nodes:
            for place, nodes in zip(self._nodes, selected, strict=True):
                place.copy_(nodes)

    def _step(self) -> Tensor:
        """`[5]`: supervised loss, pseudo loss, accuracy of the predicted, number and accuracy of pseudo labels."""
        assert self._nodes is not None
        predicted, shown = self._nodes
        self.model.train()
        # none at the start, so that a captured step has gradients of its own
        self.optimizer.zero_grad(set_to_none=True)
        # where nodes are selected, those that show labels change in place: their graph is made in the step
        logits = self.model(self.x, self.task.show(shown) if self._same is None else self._same)
        mine, truth = logits.index_select(0, predicted), self.task.y.index_select(0, predicted)
        supervised = F.cross_entropy(mine, truth)
        loss, pseudo_loss = supervised, torch.zeros_like(supervised)
        count, pseudo_accuracy = pseudo_loss, torch.full_like(supervised, math.nan)
        if self.as_train is not None:
            pseudo = select_pseudo_labels(logits, self.task.candidates, self._confidence, self.as_train)
            pseudo_loss = pseudo_label_loss(logits, pseudo, self._confidence, self.as_train.weight)
            loss = supervised + pseudo_loss
            count, pseudo_accuracy = pseudo.number, pseudo_label_accuracy(pseudo, self.task.y)
        loss.backward()
        self.optimizer.step()

        accuracy = (mine.detach().argmax(-1) == truth).float().mean()
        numbers = (supervised, pseudo_loss, accuracy, count, pseudo_accuracy)
        return torch.stack([number.detach().double() for number in numbers])

    @torch.no_grad()
    def _logits(self, graph: LabelGraph) -> Tensor:
        self.model.eval()
        out: Tensor = self.model(self.x, graph)
        return out

    @torch.no_grad()
    def _measure(self, graph: LabelGraph) -> Tensor:
        """`[3]`: accuracy, macro-F1 and loss of the validation nodes."""
        logits = self._logits(graph).index_select(0, self.task.val)
        scores = measure(logits.argmax(-1), self.task.val_y, graph.num_classes)
        loss = F.cross_entropy(logits.float(), self.task.val_y)
        return torch.cat([scores, loss.double()[None]])

    def _keep(self, shown: Tensor) -> _Kept:
        """What is kept of the nodes that show labels, made anew for other nodes than the last time."""
        if self._kept is None or self._kept.shown is not shown:
            self._kept = _Kept(shown, self.task.show(shown), Replay(self._graphs), Replay(self._graphs))
        return self._kept
