"""Full batch: one step an epoch, over the whole graph at once."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph import LabelBlock, LabelGraph, TrainingNodeSelection
from legnn.graph.sampling import with_labels_of
from legnn.ops.select import TRITON, kernels_for_device
from legnn.ops.stack import stack_scalars
from legnn.ops.step_inputs import StepInputs
from legnn.ops.validation import validation_metrics
from legnn.training.cuda_graph import CudaGraphs, Replay
from legnn.training.in_flight import EpochRing
from legnn.training.last_stage import last_block
from legnn.training.objective import CandidateLogits, StepLosses
from legnn.training.optimizer import reads_lr_from_device
from legnn.training.protocols import Batching, Reduce, TrainMetrics, ValMetrics, require_staged
from legnn.training.sharing import kept_by_group


class _Kept(NamedTuple):
    """What does not change as long as the same nodes show their labels."""

    shown: Tensor
    graph: LabelGraph
    """What it caches (degrees, counts, labels by class) is most of the work of building one."""
    validation: Replay
    logits: Replay


class _Epochs(NamedTuple):
    """Epochs of a step and the validation after it."""

    shown: Tensor | None
    replay: Replay
    ring: EpochRing | None
    """None where nothing is captured, or weights are large."""


@dataclass(eq=False, repr=False)
class FullBatch(Batching):
    """Trains on, and predicts, the whole graph in one forward pass.

    On a GPU an epoch, step and validation, is captured as a CUDA graph after a few epochs: nodes are selected in the
    step, which reads `TC` and the learning rate from tensors that are written to before. Results are the same to the
    bit.
    """

    _: KW_ONLY
    cuda_graphs: bool = True

    def __post_init__(self) -> None:
        self.device = self.task.x.device
        self.inputs = kept_by_group("inputs", lambda: self.model.inputs(self.task.x, self.dtype, self.task.node_type))
        self._confidence = torch.ones((), device=self.device)
        self._step_inputs = self._make_step_inputs()
        self._lr: float | None = None
        """Of the next step; None for what the optimizer has."""
        self._may_choose = False
        """Whether a candidate can get a pseudo label in this epoch."""
        self._same: tuple[TrainingNodeSelection, LabelGraph] | None = None
        """Where all epochs have the same nodes: these, and their graph."""
        self._begin()

    def train_epoch(self, epoch: int) -> TrainMetrics:
        """Select training nodes and take one step."""
        self._prepare(epoch)
        return TrainMetrics(*self._training.run(lambda: stack_scalars(self._step(), self.device)).unbind())

    def run_epoch(self, epoch: int, shown: Tensor | None) -> Tensor:
        """`train_epoch`, and `validate` with `shown`; both are one launch when they are captured."""
        self._prepare(epoch)
        epochs = self._keep_epochs(shown)
        if epochs.ring is not None:
            epochs.ring.count()
        replayed = epochs.replay.again()
        if replayed is not None:
            return replayed
        graph = None if shown is None else self._keep(shown).graph

        def step() -> Tensor:
            values = self._step()
            if graph is not None:
                values += self._measure(graph).unbind()
            metrics = stack_scalars(values, self.device)
            if epochs.ring is not None:
                epochs.ring.write(metrics)
            return metrics

        return epochs.replay.run(step)

    @property
    def ring(self) -> EpochRing | None:
        """That of captured epochs."""
        return self._epochs.ring if self._epochs is not None and self._epochs.replay.is_captured else None

    def _prepare(self, epoch: int) -> None:
        """Write what a captured step reads."""
        if self._same is None and not self.objective.selects_nodes:
            selected = self._select()
            self._same = selected, self._show(selected.shown)
        self.set_lr(self.before_step())
        confidence = self.objective.confidence(epoch)
        if confidence is not None and self.objective.rule is not None:
            self._may_choose = self.objective.rule.can_choose(confidence)
            if self._step_inputs is None:
                self._confidence.fill_(confidence)
        if self._step_inputs is not None:
            if self._lr is None:
                self._lr = float(self.optimizer.param_groups[0]["lr"])
            self._step_inputs.prepare(self._lr, 1.0 if confidence is None else confidence)

    def set_lr(self, lr: float | None) -> None:
        """Set the learning rate of the next step; None to leave it as it is."""
        if self._step_inputs is None:
            super().set_lr(lr)
        elif lr is not None:
            self._lr = lr

    def _make_step_inputs(self) -> StepInputs | None:
        """Those of steps on a GPU, which read the learning rate and `TC` there; None where the host sets them."""
        rates = {id(group["lr"]): group["lr"] for group in self.optimizer.param_groups}
        is_shared = reads_lr_from_device(self.optimizer) and len(rates) == 1
        if not is_shared or kernels_for_device(self.device) is not TRITON:
            return None
        return StepInputs(self.generator.initial_seed(), *rates.values(), self._confidence)

    def validate(self, shown: Tensor) -> ValMetrics:
        """Score the validation nodes."""
        kept = self._keep(shown)
        return ValMetrics(*kept.validation.run(lambda: self._measure(kept.graph)).unbind())

    def all_logits(self, shown: Tensor) -> Tensor:
        """`[M, C]` in evaluation mode; `shown` as in `logits`."""
        kept = self._keep(shown)
        # a copy: the next replay of a captured step overwrites its output
        return kept.logits.run(lambda: self._logits(kept.graph)).clone()

    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, with the labels of exactly the nodes `shown` in the graph."""
        graph = self._keep(shown).graph
        block = last_block(self.model, graph, nodes, training=False)
        if block is None:
            return reduce(self.all_logits(shown).index_select(0, nodes))
        return reduce(self._target_logits(graph, block))

    def reset(self) -> None:
        """Free the captured steps and their memory; they are captured again when needed."""
        super().reset()
        self._graphs.end()
        self._begin()

    def _begin(self) -> None:
        generators = (self.generator,) if self._step_inputs is None else ()
        self._graphs = CudaGraphs(self.device, enabled=self.cuda_graphs, generators=generators)
        if self._graphs.enabled and not reads_lr_from_device(self.optimizer):
            self._graphs.give_up("its optimizer keeps the learning rate on the host (make_adam's does not)")
        self._training = Replay(self._graphs)
        self._kept: _Kept | None = None
        self._epochs: _Epochs | None = None

    def _select(self) -> TrainingNodeSelection:
        inputs = self._step_inputs
        return self.objective.select(self.task.train, self.generator if inputs is None else inputs.selection)

    @property
    def draws(self) -> Tensor | None:
        """What the keys of the next step depend on."""
        return None if self._step_inputs is None else self._step_inputs.state

    def load_draws(self, state: Tensor) -> None:
        """Goes on from an earlier state of `draws`."""
        assert self._step_inputs is not None
        self._step_inputs.load(state)

    def _step(self) -> list[Tensor | float]:
        """One step; returns its `TrainMetrics`, numbers of the device or of the host."""
        with nullcontext() if self._step_inputs is None else self._step_inputs.step():
            return self._take_step()

    def _take_step(self) -> list[Tensor | float]:
        self.model.train()
        # none at the start, so that a captured step has gradients of its own
        self.optimizer.zero_grad(set_to_none=True)
        if self._same is not None:
            (predicted, _), graph = self._same
            logits = self._training_logits(graph)
        else:
            selection = self._select()
            graph = self.task.show(selection.shown)
            logits = self._training_logits(graph)
            predicted = selection.predicted
        losses = self._losses(logits, predicted)
        loss = losses.total
        second = self.model.auxiliary(self.inputs, graph)
        if second is not None:
            weight, logits = second
            loss = loss + weight * self.objective.supervised(logits, self.task.y, predicted).loss
        if loss.requires_grad:
            loss.backward()
            self.optimizer.step()
        else:
            # without parameters, it learns everything at once or nothing
            train = self.task.train
            self.model.fit_labels(self.inputs, self.task.show(train), train, self.task.y.index_select(0, train))
        return self._metrics(losses)

    def _training_logits(self, graph: LabelGraph) -> Tensor:
        """`[M, C]`, or those of the training nodes alone where no candidate is read."""
        if self._may_choose or self._training_block is None:
            return self.model(self.inputs, graph)
        block = with_labels_of(graph, self._training_block)
        return require_staged(self.model).target_logits(self.inputs, graph, block)

    def _losses(self, logits: Tensor, predicted: Tensor) -> StepLosses:
        """Both terms of the loss for `_training_logits`."""
        y, candidates = self.task.y, None
        if not self._may_choose and self._training_block is not None:
            y, predicted = y.index_select(0, self.task.train), torch.searchsorted(self.task.train, predicted)
        elif self.objective.rule is not None:
            nodes = self.task.candidates
            candidates = CandidateLogits(nodes, logits, rows=nodes)
        return self.objective.losses(logits, y, candidates, self._confidence, nodes=predicted)

    @cached_property
    def _training_block(self) -> LabelBlock | None:
        """What the last stage reads where training nodes alone are predicted, without labels; None for all nodes."""

        def make() -> LabelBlock | None:
            return last_block(self.model, self.task.graph, self.task.train, training=True)

        return kept_by_group("training block", make)

    def _metrics(self, losses: StepLosses) -> list[Tensor | float]:
        accuracy = math.nan if self.objective.shows_predicted else losses.accuracy
        supervised, no_labels = losses.supervised.detach(), math.nan if self.objective.rule is None else 0.0
        if losses.labels is None or losses.pseudo is None:
            return [supervised, 0.0, accuracy, no_labels, math.nan]
        known, right = losses.labels.known_and_right(self.task.y, rows=losses.labels.nodes)
        return [supervised, losses.pseudo.detach(), accuracy, losses.labels.number, right / known]

    @torch.no_grad()
    def _logits(self, graph: LabelGraph) -> Tensor:
        self.model.eval()
        return self.model(self.inputs, graph)

    @torch.no_grad()
    def _measure(self, graph: LabelGraph) -> Tensor:
        def make() -> LabelBlock | None:
            return last_block(self.model, graph, self.task.val, training=False)

        block = graph.cached("validation block", make)
        if block is None:
            return validation_metrics(self._logits(graph), self.task.y, self.task.val)
        logits = self._target_logits(graph, block)
        return validation_metrics(logits, self.task.val_y)

    @torch.no_grad()
    def _target_logits(self, graph: LabelGraph, block: LabelBlock) -> Tensor:
        """`[n, C]` in evaluation mode of the targets of `block`, the last stage of `graph`."""
        return require_staged(self.model.eval()).target_logits(self.inputs, graph, block)

    def _show(self, shown: Tensor) -> LabelGraph:
        """The graph that shows the labels of `shown`; for all runs of a group the same where they share these."""
        if shown is not self.task.train:
            return self.task.show(shown)
        return kept_by_group("all labels shown", lambda: self.task.show(shown))

    def _keep(self, shown: Tensor) -> _Kept:
        if self._kept is None or self._kept.shown is not shown:
            self._kept = _Kept(shown, self._show(shown), Replay(self._graphs), Replay(self._graphs))
        return self._kept

    def _keep_epochs(self, shown: Tensor | None) -> _Epochs:
        if self._epochs is None or self._epochs.shown is not shown:
            number = len(TrainMetrics._fields) + (0 if shown is None else len(ValMetrics._fields))
            metrics = torch.empty(number, dtype=torch.double, device=self.device)
            ring = EpochRing.of(self.model, number) if self._graphs.enabled else None
            self._epochs = _Epochs(shown, Replay(self._graphs, metrics), ring)
        return self._epochs
