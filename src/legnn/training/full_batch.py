"""Full batch: one step an epoch, over the whole graph at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.training.batching import Batching, Reduce
from legnn.training.cuda_graph import CapturedStep, GraphCapture
from legnn.training.metrics import Metrics, stack_sums, training_metrics
from legnn.training.objective import Candidates


class _Evaluation(NamedTuple):
    """The validation while the same nodes show their labels."""

    shown: Tensor
    graph: LabelGraph
    """Shown labels; cached degrees, counts and labels by class are most of the work of building it."""
    validation: CapturedStep


@dataclass(eq=False, repr=False)
class FullBatch(Batching):
    """Trains on, and predicts, the whole graph in one forward pass.

    With `capture`, the step and the validation become CUDA graphs after a few epochs: nodes are selected in the step,
    which reads `TC` and the learning rate from tensors that are written before. Results are the same to the bit.
    """

    _: KW_ONLY
    capture: bool = False

    def __post_init__(self) -> None:
        self.device = self.task.x.device
        self.inputs = self.model.prepare(self.task.x, self.dtype, self.task.node_type)
        self._confidence = torch.ones((), device=self.device)
        self.reset()

    def train_epoch(self, epoch: int, before_step: Callable[[], None] = lambda: None) -> Metrics:
        """Select training nodes and take one step."""
        before_step()
        confidence = self.objective.confidence(epoch)
        if confidence is not None:
            self._confidence.fill_(confidence)
        sums = self._training.run(self._step)
        num_predicted = self.objective.num_predicted(self.task.train.numel())
        metrics = training_metrics(sums, num_predicted, 1, self_training=self.objective.rule is not None)
        if self.objective.shows_predicted:
            # it would be the accuracy of copying
            metrics["train_accuracy"] = torch.full_like(metrics["train_accuracy"], math.nan)
        return metrics

    def validate(self, shown: Tensor) -> Tensor:
        """Logits `[n, C]` of the validation nodes."""
        evaluation = self._evaluate(shown)
        return evaluation.validation.run(lambda: self._logits(evaluation.graph).index_select(0, self.task.val))

    def all_logits(self, shown: Tensor) -> Tensor:
        """`[M, C]` in evaluation mode; `shown` as in `logits`."""
        return self._logits(self._evaluate(shown).graph)

    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, with the labels of exactly the nodes `shown` in the graph."""
        return reduce(self.all_logits(shown).index_select(0, nodes))

    def reset(self) -> None:
        """Free the captured steps and their memory; they are captured again when needed."""
        super().reset()
        self._graphs = GraphCapture(self.device, enabled=self.capture, generators=(self.generator,))
        self._training = CapturedStep(self._graphs)
        self._evaluation: _Evaluation | None = None

    def _step(self) -> Tensor:
        """Take one step; returns the vector of `metrics.SUMS`."""
        self.model.train()
        # none at the start, so that a captured step has gradients of its own
        self.optimizer.zero_grad(set_to_none=True)
        predicted, graph = self._select() if self.objective.selects_nodes else self._unselected
        logits, y = self.model(self.inputs, graph), self.task.y.index_select(0, predicted)
        candidates = None
        if self.objective.rule is not None:
            nodes = self.task.candidates
            candidates = Candidates(nodes, logits.index_select(0, nodes), self.task.y.index_select(0, nodes))
        losses = self.objective.losses(logits.index_select(0, predicted), y, candidates, self._confidence)
        loss = losses.total
        auxiliary = self.model.auxiliary(self.inputs, graph)
        if auxiliary is not None:
            weight, others = auxiliary
            loss = loss + weight * self.objective.supervised(others.index_select(0, predicted), y, y.numel())
        if loss.requires_grad:
            loss.backward()
            self.optimizer.step()
        else:
            # without parameters, it learns everything at once or nothing
            train = self.task.train
            self.model.fit_labels(self.inputs, self.task.show(train), train, self.task.y.index_select(0, train))
        return stack_sums(losses.sums, self.device)

    def _select(self) -> tuple[Tensor, LabelGraph]:
        """The nodes that are predicted, and the graph in which the others show their labels."""
        selected = self.objective.select(self.task.train, self.generator)
        return selected.predicted, self.task.show(selected.shown)

    @cached_property
    def _unselected(self) -> tuple[Tensor, LabelGraph]:
        """`_select` where all epochs have the same nodes."""
        return self._select()

    @torch.no_grad()
    def _logits(self, graph: LabelGraph) -> Tensor:
        self.model.eval()
        return self.model(self.inputs, graph)

    def _evaluate(self, shown: Tensor) -> _Evaluation:
        if self._evaluation is None or self._evaluation.shown is not shown:
            self._evaluation = _Evaluation(shown, self.task.show(shown), CapturedStep(self._graphs))
        return self._evaluation
