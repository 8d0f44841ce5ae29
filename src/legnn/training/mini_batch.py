"""Mini-batches: many steps an epoch, each over a sample of the neighbors of some nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Literal

import torch
from torch import Generator, Tensor

from legnn.graph import LabelGraph, SampledLabelGraph, TrainingNodeSelection, sample_label_graph
from legnn.graph.padding import SampleSizes
from legnn.nn import Model
from legnn.ops.sample import SamplingOptions
from legnn.training.batches import Batch, BatchSampler, draw_nodes
from legnn.training.batching import Batching, DevicePlan, Reduce, require_staged
from legnn.training.inference import to_class_and_confidence
from legnn.training.layer_wise import LayerWise
from legnn.training.metrics import Metrics, stack_sums, training_metrics
from legnn.training.objective import Candidates
from legnn.training.padded_batches import PROBES, Padding, StepsBySize
from legnn.training.ranks import SINGLE_PROCESS, Ranks, average_gradients, gradient_vector
from legnn.training.self_training import ASTrain

EPOCH_SEEDS = 1_000_003
"""Keeps the seeds of the epochs of one run apart from those of another."""


def can_capture(model: Model, sampling: SamplingOptions, rule: ASTrain | None, ranks: Ranks) -> bool:
    """Whether steps of mini-batches can be captured as CUDA graphs."""
    # what processes exchange in the middle of a step is not captured
    exchanges = ranks.world_size > 1 and rule is not None
    return None not in sampling.fanouts and require_staged(model).supports_padding and not exchanges


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

    Where `plan` says that steps are captured as CUDA graphs, which `can_capture` has to allow, batches are padded to a
    few fixed sizes. Steps that are not captured give the same results to the bit on the same batches.
    """

    _: KW_ONLY
    batch: int
    """Most nodes predicted in a step, and most candidates."""
    sampling: SamplingOptions
    """Neighbors drawn in each layer."""
    pseudo_steps: Literal["joint", "separate"] = "joint"
    ranks: Ranks = SINGLE_PROCESS
    chunk_size: int | None = None
    """See `LayerWise`."""
    plan: DevicePlan = field(default_factory=DevicePlan)
    pad: bool = False
    """Whether batches are padded even if steps are not captured."""

    def __post_init__(self) -> None:
        self.device = next(require_staged(self.model).parameters()).device
        self.inference = LayerWise(
            self.model,
            self.task,
            self.device,
            self.dtype,
            chunk_size=self.chunk_size,
            ranks=self.ranks,
            plan=self.plan,
        )
        self._planned: dict[tuple[int, int], list[SampleSizes]] = {}
        self._sums = stack_sums({}, self.device)
        # where captured steps read it
        self._confidence = torch.zeros((), device=self.device)
        # every epoch has a seed of its own: a resumed run needs no other state of the dropout
        self._seed = self.generator.initial_seed()
        self.reset()

    def train_epoch(self, epoch: int, before_step: Callable[[], None] = lambda: None) -> Metrics:
        """Select training nodes, and train on the predicted ones and on pseudo labels."""
        torch.manual_seed((self._seed * EPOCH_SEEDS + epoch) * self.ranks.world_size + self.ranks.rank)
        predicted, shown = self._select(self.generator)
        graph, steps = self.task.show(shown), self._num_steps(predicted)
        self._sums.zero_()
        rule, confidence = self.objective.rule, self.objective.confidence(epoch)
        if rule is None or confidence is None or not rule.may_select(confidence):
            self._train(graph, predicted, steps, before_step)
        elif self.pseudo_steps == "joint":
            self._confidence.fill_(confidence)
            candidates = draw_nodes(self.task.candidates, steps * self.batch, self.generator)
            self._train(graph, predicted, steps, before_step, candidates)
        else:
            self._train(graph, predicted, steps, before_step)
            steps = self._train_on_pseudo_labels(graph, rule, confidence, before_step)
        sums = self.ranks.all_reduce(self._sums.clone())
        # the loss of a step is the average of those of the processes
        steps = max(steps, 1) * self.ranks.world_size
        return training_metrics(sums, predicted.numel(), steps, self_training=rule is not None)

    def validate(self, shown: Tensor) -> Tensor:
        """Logits `[n, C]` of the validation nodes, over all their neighbors."""
        return self.inference.logits(shown, self.task.val)

    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, over all their neighbors."""
        return self.inference.logits(shown, nodes, reduce)

    def reset(self) -> None:
        """Free the captured steps and their memory; they are captured again when needed."""
        super().reset()
        self._steps = StepsBySize(self.device, capture=self.plan.capture)

    def _probe(self, num_predicted: int, num_candidates: int) -> Iterator[SampledLabelGraph]:
        """Samples like those of the steps, from which their sizes are planned."""
        generator = torch.Generator().manual_seed(0)
        predicted, shown = self._select(generator)
        graph = self.task.show(shown)
        for k in range(PROBES):
            nodes = draw_nodes(predicted, num_predicted, generator)
            others = draw_nodes(self.task.candidates, num_candidates, generator)
            masked = graph.hide(nodes) if self.objective.shows_predicted else graph
            yield sample_label_graph(masked, torch.cat([nodes, others]), self.sampling, (k, 0))

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
        # not stored: it refers to this object, and a cycle is freed late
        pad = Padding(self._probe, self._planned).pad if self.pad or self.plan.capture else None
        sampler = BatchSampler(self.inference, self.sampling, self.generator, self.ranks, hides, pad)
        return sampler.batches(graph, predicted, candidates, steps)

    def _train(
        self,
        graph: LabelGraph,
        predicted: Tensor,
        steps: int,
        before_step: Callable[[], None],
        candidates: Tensor | None = None,
    ) -> None:
        """Take `steps` steps on the predicted nodes and, where there are candidates, on their pseudo labels."""
        self.model.train()
        others = predicted[:0] if candidates is None else candidates
        step = partial(self._step, has_candidates=candidates is not None)
        for batch in self._batches(graph, predicted, others, steps):
            before_step()
            self._finish_step(self._steps.run(batch, step) if batch.is_padded else step(batch))

    def _step(self, batch: Batch, *, has_candidates: bool) -> Tensor:
        """One step, up to `_finish_step`."""
        logits, others = batch.split(self._forward(batch))
        truth, other_truth = batch.split(batch.truth)
        losses = self.objective.losses(
            logits,
            truth,
            Candidates(batch.candidates, others, other_truth) if has_candidates else None,
            self._confidence,
            num_predicted=batch.num_predicted,
            ranks=self.ranks,
        )
        self._sums += stack_sums(losses.sums, self.device)
        return self._backward(losses.total)

    def _train_on_pseudo_labels(
        self, graph: LabelGraph, rule: ASTrain, confidence: float, before_step: Callable[[], None]
    ) -> int:
        """Select pseudo labels among all candidates and take steps on them alone; returns how many."""
        nodes = self.task.candidates
        y, p = self._predict_in_training_mode(graph, nodes).unbind(1)
        labels = rule.select(nodes.to(self.device), y.long(), p.float(), confidence)
        if self.ranks.is_rank_zero:
            # every process has all of them
            self._sums += stack_sums(labels.counts(self.task.y[nodes].to(self.device)), self.device)
        chosen = labels.chosen.nonzero().flatten()
        order = draw_nodes(chosen, chosen.numel(), self.generator)
        labels, nodes = labels.take(order), nodes[order.to(nodes.device)]
        steps = self._num_steps(nodes)
        if steps:
            for batch in self._batches(graph, nodes[:0], nodes, steps):
                logits = batch.split(self._forward(batch))[1]
                loss = self.objective.pseudo_loss(logits, labels.take(batch.candidate_index), confidence, self.ranks)
                self._sums += stack_sums({"pseudo_loss": loss}, self.device)
                before_step()
                self._finish_step(self._backward(loss))
        return steps

    @torch.no_grad()
    def _predict_in_training_mode(self, graph: LabelGraph, nodes: Tensor) -> Tensor:
        """`[n, 2]` class and confidence of `nodes`, over sampled neighbors and with dropout, as in a step."""
        predicted = torch.zeros(nodes.numel(), 2, dtype=torch.double, device=self.device)
        if nodes.numel():
            for batch in self._batches(graph, nodes[:0], nodes, self._num_steps(nodes)):
                logits = batch.split(self.model(batch.x, batch.graph))[1]
                predicted[batch.candidate_index] = to_class_and_confidence(logits)
        return self.ranks.all_reduce(predicted)

    def _forward(self, batch: Batch) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        return self.model(batch.x, batch.graph)

    def _backward(self, loss: Tensor) -> Tensor:
        """Take the step, but for what `_finish_step` does; returns the gradients where these are to be averaged."""
        loss.backward()
        if self.ranks.world_size > 1:
            return gradient_vector(self.model)
        self.optimizer.step()
        return loss.detach()

    def _finish_step(self, gradients: Tensor) -> None:
        """Average the gradients over processes, which is not captured, and take the step with them."""
        if self.ranks.world_size > 1:
            average_gradients(self.model, gradients, self.ranks)
            self.optimizer.step()
