"""Mini-batches: many steps an epoch, each over a sample of the neighbors of some nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph import LabelGraph, SampledLabelGraph, TrainingNodeSelection, sample_label_graph
from legnn.graph.sampling import Fanout
from legnn.training.inference import to_class_and_confidence
from legnn.training.layer_wise import LayerWise
from legnn.training.metrics import validation_metrics
from legnn.training.objective import PseudoLabels
from legnn.training.prefetch import prefetch
from legnn.training.protocols import Batching, Reduce, SelfTrainingRule, TrainMetrics, ValMetrics, require_staged
from legnn.training.ranks import SINGLE_PROCESS, Ranks

EPOCH_SEEDS = 1_000_003
"""Keeps the seeds of the epochs of one run apart from those of another."""


class Seeds(NamedTuple):
    """Nodes to predict."""

    nodes: Tensor
    """`[n]`, each once."""
    y: Tensor
    """`[n]` their classes, or pseudo labels."""
    weight: Tensor
    """`[n]` float: how much each counts."""

    def take(self, index: Tensor | slice) -> Seeds:
        """Some of them."""
        return Seeds(*(values[index] for values in self))


class Batch(NamedTuple):
    """What one step reads, on the device."""

    x: Tensor
    graph: SampledLabelGraph
    seeds: Seeds
    num_seeds: int
    """Seeds of the step over all processes."""

    def tensors(self) -> Iterator[Tensor]:
        """All tensors of the batch."""
        yield self.x
        yield from self.seeds
        yield from self.graph.tensors()


@dataclass(eq=False, repr=False)
class MiniBatch(Batching):
    """Trains on samples of neighbors, and predicts layer by layer over all of them.

    The graph and the features stay where the task put them, on the device or in the host's memory; batches are sampled
    there and moved to the device of the model. With a self-training rule, an epoch trains on the predicted nodes, then
    chooses pseudo labels without gradient, with the labels of the epoch shown, then trains on those.

    With several processes, each takes its share of every batch, and the loss of a step is the mean over the whole
    batch: gradients are those of one process that takes all of it.
    """

    _: KW_ONLY
    batch: int
    """Most nodes predicted in a step."""
    fanouts: Sequence[Fanout]
    """Neighbors drawn in each layer, from the input side."""
    ranks: Ranks = SINGLE_PROCESS
    chunk_size: int | None = None
    """Of `LayerWise`."""

    def __post_init__(self) -> None:
        self.device = next(require_staged(self.model).parameters()).device
        self.inference = LayerWise(
            self.model, self.task, self.device, self.dtype, chunk_size=self.chunk_size, ranks=self.ranks
        )
        self._parallel = self.ranks.data_parallel(self.model)
        # every epoch has a seed of its own: a resumed run needs no other state of the dropout
        self._seed = self.generator.initial_seed()

    def train_epoch(self, epoch: int) -> TrainMetrics:
        """Select training nodes and train on the predicted; then choose pseudo labels and train on those."""
        torch.manual_seed((self._seed * EPOCH_SEEDS + epoch) * self.ranks.world_size + self.ranks.rank)
        predicted, shown = self._select()
        graph = self.task.show(shown)
        y = self.task.y[predicted]
        loss, accuracy = self._train(graph, Seeds(predicted, y, torch.ones_like(y, dtype=torch.float)), 1.0)
        rule, confidence = self.objective.rule, self.objective.confidence(epoch)
        nan = torch.full_like(loss, math.nan)
        metrics = TrainMetrics(loss, torch.zeros_like(loss), accuracy, nan, nan)
        if rule is None or confidence is None:
            return metrics
        pseudo = self._pseudo_labels(rule, shown, confidence)
        chosen = pseudo.chosen.nonzero().flatten()
        order = torch.randperm(chosen.numel(), generator=self.generator).to(chosen.device)
        if chosen.numel():
            seeds = Seeds(pseudo.nodes, pseudo.y, pseudo.evaluating_confidence).take(chosen[order])
            weight = rule.loss_weight(confidence)
            metrics = metrics._replace(pseudo_loss=weight * self._train(graph, seeds, weight)[0])
        number, right = pseudo.number.to(loss), pseudo.accuracy(self.task.y).to(loss)
        return metrics._replace(pseudo_labels=number, pseudo_label_accuracy=right)

    def validate(self, shown: Tensor) -> ValMetrics:
        """Score the validation nodes over all their neighbors."""
        metrics = validation_metrics(self.inference.logits(shown, self.task.val), self.task.val_y)
        return ValMetrics(*metrics.to(self.device).unbind())

    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, over all their neighbors."""
        return self.inference.logits(shown, nodes, reduce)

    def _select(self) -> TrainingNodeSelection:
        selected = self.objective.select(self.task.train, self.generator)
        if self.objective.selects_nodes:
            return selected
        # the same nodes in every epoch, in other batches
        order = torch.randperm(selected.predicted.numel(), generator=self.generator)
        return selected._replace(predicted=selected.predicted[order.to(selected.predicted.device)])

    def _train(self, graph: LabelGraph, seeds: Seeds, factor: float) -> tuple[Tensor, Tensor]:
        """Train on `seeds` in batches; returns the mean loss, before `factor`, and the accuracy."""
        self.model.train()
        sums = torch.zeros(2, dtype=torch.double, device=self.device)
        for batch in prefetch(self._batches(graph, seeds), self.device, Batch.tensors):
            self.optimizer.zero_grad(set_to_none=True)
            logits = self._parallel(batch.x, batch.graph)
            y = batch.seeds.y
            losses = batch.seeds.weight * self.objective.node_losses(logits, y)
            # gradients are averaged over processes, and the mean is to be over the whole batch
            (factor * self.ranks.world_size / batch.num_seeds * losses.sum()).backward()
            self.optimizer.step()
            hits = (batch.seeds.weight > 0) & (logits.detach().argmax(-1) == y)
            sums += torch.stack([losses.detach().double().sum(), hits.double().sum()])
        loss, accuracy = (self.ranks.all_reduce(sums) / seeds.nodes.numel()).unbind()
        return loss, accuracy

    def _batches(self, graph: LabelGraph, seeds: Seeds) -> Iterator[Batch]:
        """Batches of nearly the same size, none larger than `batch`."""
        count = -(-seeds.nodes.numel() // self.batch)
        keys = torch.randint(2**32, (count, 2), generator=self.generator).tolist()
        mean = self.inference.class_mean(graph)
        parts = torch.arange(seeds.nodes.numel(), device=seeds.nodes.device).tensor_split(count)
        here = graph
        for index, key in zip(parts, keys, strict=True):
            if self.objective.shows_predicted:
                # the nodes of a batch show labels too: to all the others, not in their own batch
                here = graph.hide(seeds.nodes[index])
                mean = self.inference.class_mean(here)
            mine = seeds.take(index[self.ranks.rank :: self.ranks.world_size])
            if mine.nodes.numel() == 0:
                # there are fewer seeds than processes: this one computes a seed of another, with weight zero
                mine = seeds.take(index[:1])._replace(weight=seeds.weight[:1] * 0)
            sampled = sample_label_graph(here, mine.nodes, self.fanouts, tuple(key))
            yield Batch(
                self.inference.inputs(sampled.nodes),
                sampled.with_class_mean(mean).to(self.device),
                Seeds(*(values.to(self.device, non_blocking=True) for values in mine)),
                index.numel(),
            )

    def _pseudo_labels(self, rule: SelfTrainingRule, shown: Tensor, confidence: float) -> PseudoLabels:
        candidates = self.task.candidates
        if not rule.can_choose(confidence):
            candidates = candidates[:0]
        y, p = self.inference.logits(shown, candidates, to_class_and_confidence).unbind(1)
        return rule.choose(candidates, y.long(), p.float(), confidence)
