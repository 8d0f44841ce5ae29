"""Mini-batches: many steps an epoch, each over a sample of the neighbors of some nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.optim import Optimizer

from legnn.config import SelfTrainingSettings
from legnn.graph import LabelGraph, SampledLabelGraph, TrainingNodeSelection, sample_label_graph, select_training_nodes
from legnn.graph.sampling import Fanout
from legnn.nn import LEGNN
from legnn.training.as_train import PseudoLabels, pseudo_label_accuracy, pseudo_labels_of, training_confidence
from legnn.training.batching import Step, Validation
from legnn.training.layer_wise import LayerWise
from legnn.training.metrics import measure
from legnn.training.prefetch import prefetch
from legnn.training.ranks import ALONE, Ranks
from legnn.training.task import Task

EPOCH_SEEDS = 1_000_003
"""Keeps the seeds of the epochs of one run apart from those of another."""


class Seeds(NamedTuple):
    """Nodes to be predicted, with the classes they are to have."""

    nodes: Tensor
    """`[n]`, each once."""
    y: Tensor
    """`[n]`."""
    weight: Tensor
    """`[n]` float: how much each counts."""

    def take(self, places: Tensor | slice) -> Seeds:
        """Some of them."""
        return Seeds(*(values[places] for values in self))


class Batch(NamedTuple):
    """What one step reads, on the device."""

    x: Tensor
    graph: SampledLabelGraph
    seeds: Seeds
    of: int
    """How many seeds the step has over all processes."""

    def tensors(self) -> Iterator[Tensor]:
        """All that it is made of."""
        yield self.x
        yield from self.seeds
        yield from self.graph.tensors()


class MiniBatch:
    """Trains on samples of neighbors, and predicts layer by layer over all of them.

    The graph and the features lie where the task put them, on the device or in the host's memory; batches are sampled
    there and brought to `device`. In AS-Train, an epoch trains on the predicted nodes, then chooses pseudo labels
    without gradient, with the labels of the epoch shown, then trains on those.

    With several processes, each takes its share of every batch, and the loss of a step is the mean over the whole
    batch: gradients are those of one process that takes all of it.
    """

    def __init__(
        self,
        model: LEGNN,
        task: Task,
        optimizer: Optimizer,
        generator: Generator,
        *,
        batch: int,
        fanouts: Sequence[Fanout],
        alpha: float,
        selection: bool,
        shows_labels: bool,
        as_train: SelfTrainingSettings | None,
        dtype: torch.dtype = torch.float32,
        ranks: Ranks = ALONE,
        at_once: int | None = None,
    ) -> None:
        self.model, self.task, self.optimizer, self.generator = model, task, optimizer, generator
        self.batch, self.fanouts = batch, fanouts
        self.alpha, self.selection, self.shows_labels, self.as_train = alpha, selection, shows_labels, as_train
        self.ranks = ranks
        self.device = next(model.parameters()).device
        self.inference = LayerWise(model, task, self.device, dtype, at_once=at_once, ranks=ranks)
        self._parallel = ranks.wrap(model)
        # of every epoch by itself: whoever goes on from a checkpoint needs no other state of the dropout
        self._seed = generator.initial_seed()

    def train_epoch(self, epoch: int) -> Step:
        """Select training nodes and train on the predicted; then choose pseudo labels and train on those."""
        torch.manual_seed((self._seed * EPOCH_SEEDS + epoch) * self.ranks.size + self.ranks.rank)
        predicted, shown = self._select()
        graph = self.task.show(shown)
        y = self.task.y[predicted]
        loss, hits = self._train(graph, Seeds(predicted, y, torch.ones_like(y, dtype=torch.float)), 1.0)
        confidence = count = pseudo_accuracy = None
        pseudo_loss = torch.zeros_like(loss)
        if self.as_train is not None:
            confidence = training_confidence(epoch, self.as_train.delta) if self.as_train.use_tc else 1.0
            pseudo = self._pseudo_labels(shown, confidence, self.as_train)
            count, pseudo_accuracy = pseudo.number, pseudo_label_accuracy(pseudo, self.task.y).to(loss)
            chosen = pseudo.chosen.nonzero().flatten()
            order = torch.randperm(chosen.numel(), generator=self.generator).to(chosen.device)
            seeds = Seeds(pseudo.nodes, pseudo.y, pseudo.evaluating_confidence).take(chosen[order])
            if chosen.numel():
                factor = self.as_train.weight * confidence
                pseudo_loss = factor * self._train(graph, seeds, factor)[0]
        return Step(
            supervised_loss=loss,
            pseudo_loss=pseudo_loss,
            train_accuracy=hits,
            training_confidence=confidence,
            pseudo_labels=None if count is None else count.to(loss),
            pseudo_label_accuracy=pseudo_accuracy,
        )

    def validate(self, shown: Tensor) -> Validation:
        """Score the validation nodes over all their neighbors, with the labels of the nodes `shown` in the graph."""
        logits = self.inference.rows(shown, self.task.val, lambda logits: logits)
        y = self.task.val_y
        scores = measure(logits.argmax(-1), y, logits.size(1))
        return Validation(*torch.cat([scores, F.cross_entropy(logits, y).double()[None]]).to(self.device).unbind())

    def predict(self, shown: Tensor, nodes: Tensor) -> Tensor:
        """`[n, 2]` class and confidence of `nodes`, over all their neighbors."""
        return self.inference.predict(shown, nodes)

    def reset(self) -> None:
        """Let go of gradients."""
        self.optimizer.zero_grad(set_to_none=True)

    def _select(self) -> TrainingNodeSelection:
        train = self.task.train
        if self.shows_labels and self.selection:
            return select_training_nodes(train, self.alpha, self.generator)
        order = torch.randperm(train.numel(), generator=self.generator).to(train.device)
        return TrainingNodeSelection(predicted=train[order], shown=train if self.shows_labels else train[:0])

    def _train(self, graph: LabelGraph, seeds: Seeds, factor: float) -> tuple[Tensor, Tensor]:
        """Train on `seeds` in batches; gives the mean loss, before `factor`, and the accuracy."""
        self.model.train()
        sums = torch.zeros(2, dtype=torch.double, device=self.device)
        for batch in prefetch(self._batches(graph, seeds), self.device, Batch.tensors):
            self.optimizer.zero_grad(set_to_none=True)
            logits = self._parallel(batch.x, batch.graph)
            y = batch.seeds.y
            losses = batch.seeds.weight * F.cross_entropy(logits, y, reduction="none")
            # gradients are averaged over processes, and the mean is to be over the whole batch
            (factor * self.ranks.size / batch.of * losses.sum()).backward()
            self.optimizer.step()
            hits = (batch.seeds.weight > 0) & (logits.detach().argmax(-1) == y)
            sums += torch.stack([losses.detach().double().sum(), hits.double().sum()])
        loss, hits = (self.ranks.sum_(sums) / seeds.nodes.numel()).unbind()
        return loss, hits

    def _batches(self, graph: LabelGraph, seeds: Seeds) -> Iterator[Batch]:
        """Batches of nearly the same size, none larger than `batch`."""
        count = -(-seeds.nodes.numel() // self.batch)
        keys = torch.randint(2**32, (count, 2), generator=self.generator).tolist()
        mean = self.inference.class_mean(graph)
        # where nodes are not selected, those of a batch show labels too: to all the others, not in their own batch
        overlap = self.shows_labels and not self.selection
        parts = torch.arange(seeds.nodes.numel(), device=seeds.nodes.device).tensor_split(count)
        here = graph
        for places, key in zip(parts, keys, strict=True):
            if overlap:
                here = graph.hide(seeds.nodes[places])
                mean = self.inference.class_mean(here)
            mine = seeds.take(places[self.ranks.rank :: self.ranks.size])
            if mine.nodes.numel() == 0:
                # there are fewer seeds than processes: this one computes a seed of another, which counts nothing
                mine = seeds.take(places[:1])._replace(weight=seeds.weight[:1] * 0)
            sampled = sample_label_graph(here, mine.nodes, self.fanouts, tuple(key))
            yield Batch(
                self.inference.features(sampled.nodes),
                sampled.with_class_mean(mean).to(self.device),
                Seeds(*(values.to(self.device, non_blocking=True) for values in mine)),
                places.numel(),
            )

    def _pseudo_labels(self, shown: Tensor, confidence: float, settings: SelfTrainingSettings) -> PseudoLabels:
        candidates = self.task.candidates
        if confidence <= settings.threshold:
            # no probability is above 1: nobody can pass
            candidates = candidates[:0]
        y, p = self.predict(shown, candidates).unbind(1)
        return pseudo_labels_of(candidates, y.long(), p.float(), confidence, settings)
