"""Mini-batches: many steps an epoch, each over a sample of the neighbors of some nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Literal

import torch
from torch import Generator, Tensor

from legnn.graph import LabelGraph, SampledLabelGraph, TrainingNodeSelection, sample_label_graph
from legnn.graph.sampling import Fanout
from legnn.ops.runtime.generators import copy_generators, drawing_from, generator_for, seed_generators
from legnn.ops.select import kernels_for_device
from legnn.ops.validation import validation_metrics
from legnn.training.batches import Batch, BatchSampler, draw_nodes
from legnn.training.captured_sampling import CapturedSampling
from legnn.training.epoch_sums import EpochSums
from legnn.training.inference import to_class_and_confidence
from legnn.training.layer_wise import LayerWise
from legnn.training.objective import CandidateLogits
from legnn.training.optimizer import reads_lr_from_device
from legnn.training.padded_batches import PROBES, CapturedSteps, Padding, Planned
from legnn.training.protocols import Batching, Reduce, SelfTrainingRule, TrainMetrics, ValMetrics, require_staged
from legnn.training.ranks import SINGLE_PROCESS, GradientAverage, Ranks

EPOCH_SEEDS = 1_000_003
"""Keeps the seeds of the epochs of one run apart from those of another."""


@dataclass(eq=False, repr=False)
class MiniBatch(Batching):
    """Trains on samples of neighbors, and predicts layer by layer over all of them.

    The graph and the features stay where the task put them, on the device or in the host's memory; batches are sampled
    there and moved to the device of the model.

    With a self-training rule and `pseudo_steps` joint, a step is the paper's Algorithm 1 over a sample: predicted nodes
    and candidates are the seeds of one forward pass, from which pseudo labels are chosen and both losses computed. With
    `separate`, as in the published code for ogbn-mag, an epoch trains on the predicted nodes, then predicts all
    candidates without gradient, still in training mode, then takes steps of their own on those that were chosen.

    With several processes, each takes its share of every batch, and the loss of a step is the mean over the whole
    batch: gradients are those of one process that takes all of it.

    On a GPU batches are padded to a few fixed sizes, and sampling and steps captured as CUDA graphs, if the model
    allows it. Without `cuda_graphs` the same batches and steps run launch by launch: results are the same to the bit.
    """

    _: KW_ONLY
    batch: int
    """Most nodes predicted in a step, and most candidates beside them."""
    fanouts: Sequence[Fanout]
    """Neighbors drawn in each layer, from the input side."""
    pseudo_steps: Literal["joint", "separate"] = "joint"
    ranks: Ranks = SINGLE_PROCESS
    chunk_size: int | None = None
    """Of `LayerWise`."""
    cuda_graphs: bool = True
    pad: bool | None = None
    """Whether batches are padded; None for where steps can be captured."""

    def __post_init__(self) -> None:
        self.device = next(require_staged(self.model).parameters()).device
        self.inference = LayerWise(
            self.model, self.task, self.device, self.dtype, chunk_size=self.chunk_size, ranks=self.ranks
        )
        self._sums = EpochSums(self.device, self.ranks)
        self._confidence: float | Tensor = 0.0
        self._pads, self._planned = self._can_pad() if self.pad is None else self.pad, Planned()
        # PyTorch's way to average gradients cannot be captured
        self._parallel = self.model if self._pads else self.ranks.data_parallel(self.model)
        shares = self._pads and self.ranks.world_size > 1
        self._average = GradientAverage(self.model, self.ranks) if shares else None
        self.reset()
        # every epoch has a seed of its own: a resumed run needs no other state of the dropout
        self._seed = self.generator.initial_seed()
        # not PyTorch's: up to version 2.11 each replay of a graph, also of captured sampling, writes the state of that
        # one to where a captured step beside it reads it
        is_shared = self._pads and self.device.type == "cuda" and generator_for(self.device) is None
        self._generators = copy_generators(self.device) if is_shared else None

    def train_epoch(self, epoch: int) -> TrainMetrics:
        """Select training nodes, and train on the predicted ones and on pseudo labels."""
        with nullcontext() if self._generators is None else drawing_from(self._generators):
            return self._train_epoch(epoch)

    def _train_epoch(self, epoch: int) -> TrainMetrics:
        seed_generators((self._seed * EPOCH_SEEDS + epoch) * self.ranks.world_size + self.ranks.rank)
        predicted, shown = self._select(self.generator)
        graph, steps = self.task.show(shown), self._num_steps(predicted)
        self._sums.zero()
        rule, confidence = self.objective.rule, self.objective.confidence(epoch)
        if rule is None or confidence is None or not rule.can_choose(confidence):
            self._train(graph, predicted, steps)
        elif self.pseudo_steps == "joint":
            self._set_confidence(confidence)
            candidates = draw_nodes(self.task.candidates, steps * self.batch, self.generator)
            self._train(graph, predicted, steps, candidates)
        else:
            self._train(graph, predicted, steps)
            steps = self._train_on_pseudo_labels(graph, rule, confidence)
        return self._sums.metrics(predicted.numel(), steps, self_training=rule is not None)

    def validate(self, shown: Tensor) -> ValMetrics:
        """Score the validation nodes over all their neighbors."""
        metrics = validation_metrics(self.inference.logits(shown, self.task.val), self.task.val_y)
        return ValMetrics(*metrics.to(self.device).unbind())

    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, over all their neighbors."""
        return self.inference.logits(shown, nodes, reduce)

    def reset(self) -> None:
        """Free the captured steps and their memory; they are captured again when needed."""
        super().reset()
        self._steps = CapturedSteps(self.device, enabled=self.cuda_graphs and reads_lr_from_device(self.optimizer))
        self._sampling = CapturedSampling(self.inference, self.fanouts, enabled=self.cuda_graphs and self._pads)

    def _set_confidence(self, confidence: float) -> None:
        if not self._pads:
            self._confidence = confidence
        elif isinstance(self._confidence, Tensor):
            # where captured steps read it
            self._confidence.fill_(confidence)
        else:
            self._confidence = torch.tensor(confidence, device=self.device)

    def _can_pad(self) -> bool:
        has_kernels = self.device.type == "cuda" and kernels_for_device(self.device) is not None
        bounded = None not in self.fanouts
        # what processes exchange in the middle of a step is not captured
        exchanges = self.ranks.world_size > 1 and self.objective.rule is not None
        return has_kernels and bounded and require_staged(self.model).supports_padding and not exchanges

    def _probe(self, num_predicted: int, num_candidates: int) -> Iterator[SampledLabelGraph]:
        """Samples like those of the steps, from which their sizes are planned."""
        generator = torch.Generator().manual_seed(0)
        predicted, shown = self._select(generator)
        graph = self.task.show(shown)
        for k in range(PROBES):
            nodes = draw_nodes(predicted, num_predicted, generator)
            others = draw_nodes(self.task.candidates, num_candidates, generator)
            here = graph.hide(nodes) if self.objective.shows_predicted else graph
            yield sample_label_graph(here, torch.cat([nodes, others]), self.fanouts, (k, 0))

    def _select(self, generator: Generator) -> TrainingNodeSelection:
        selected = self.objective.select(self.task.train, generator)
        if self.objective.selects_nodes:
            return selected
        # the same nodes in every epoch, in other batches
        every = selected.predicted
        return selected._replace(predicted=draw_nodes(every, every.numel(), generator))

    def _num_steps(self, nodes: Tensor) -> int:
        return -(-nodes.numel() // self.batch)

    def _batches(self, graph: LabelGraph, predicted: Tensor, candidates: Tensor, steps: int) -> Iterator[Batch]:
        hides = self.objective.shows_predicted
        # not kept: it refers to this object, and a cycle is freed late
        padding = Padding(self._probe, self._planned) if self._pads else None
        sampler = BatchSampler(self.inference, self.fanouts, self.generator, self.ranks, hides, padding, self._sampling)
        return sampler.batches(graph, predicted, candidates, steps)

    def _train(self, graph: LabelGraph, predicted: Tensor, steps: int, candidates: Tensor | None = None) -> None:
        """Take `steps` steps on the predicted nodes and, where there are candidates, on their pseudo labels."""
        self.model.train()
        others = predicted[:0] if candidates is None else candidates
        take = partial(self._take_step, has_candidates=candidates is not None)
        for batch in self._batches(graph, predicted, others, steps):
            self.set_lr(self.before_step())
            if batch.is_padded:
                self._steps.run(batch, take)
            else:
                take(batch)
            if self._average is not None:
                self._average.exchange()
                self.optimizer.step()

    def _take_step(self, batch: Batch, *, has_candidates: bool) -> Tensor:
        """One step; returns its loss."""
        mine, theirs = batch.split(self._forward(batch))
        truth, candidate_y = batch.split(batch.truth)
        losses = self.objective.losses(
            mine,
            truth,
            CandidateLogits(batch.candidates, theirs) if has_candidates else None,
            self._confidence,
            num_predicted=batch.num_predicted,
            ranks=self.ranks,
        )
        loss = losses.total
        self._step(loss)
        self._sums.add(losses, candidate_y)
        return loss.detach()

    def _train_on_pseudo_labels(self, graph: LabelGraph, rule: SelfTrainingRule, confidence: float) -> int:
        """Choose pseudo labels among all candidates and take steps on them alone; returns how many."""
        nodes = self.task.candidates
        y, p = self._predict_in_training_mode(graph, nodes).unbind(1)
        labels = rule.choose(nodes.to(self.device), y.long(), p.float(), confidence)
        if self.ranks.is_rank_zero:
            # every process has all of them
            self._sums.add_pseudo_labels(labels, self.task.y[nodes].to(self.device))
        chosen = labels.chosen.nonzero().flatten()
        order = draw_nodes(chosen, chosen.numel(), self.generator)
        labels, nodes = labels.take(order), nodes[order.to(nodes.device)]
        steps = self._num_steps(nodes)
        if steps:
            for batch in self._batches(graph, nodes[:0], nodes, steps):
                logits = batch.split(self._forward(batch))[1]
                loss = self.objective.pseudo_loss(logits, labels.take(batch.rows), confidence, self.ranks)
                self.set_lr(self.before_step())
                self._step(loss)
                self._sums.add_pseudo_loss(loss)
        return steps

    @torch.no_grad()
    def _predict_in_training_mode(self, graph: LabelGraph, nodes: Tensor) -> Tensor:
        """`[n, 2]` class and confidence of `nodes`, over sampled neighbors and with dropout, as in a step."""
        found = torch.zeros(nodes.numel(), 2, dtype=torch.double, device=self.device)
        if nodes.numel():
            for batch in self._batches(graph, nodes[:0], nodes, self._num_steps(nodes)):
                logits = batch.split(self.model(batch.x, batch.graph))[1]
                found[batch.rows] = to_class_and_confidence(logits)
        return self.ranks.all_reduce(found)

    def _forward(self, batch: Batch) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        return self._parallel(batch.x, batch.graph)

    def _step(self, loss: Tensor) -> None:
        loss.backward()
        if self._average is None:
            self.optimizer.step()
        else:
            # the rest of the step follows when all processes are here
            self._average.collect()
