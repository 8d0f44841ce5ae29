"""Predictions that never depend on a node's own label, post-processing included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.lazy import pandas as pd
from legnn.training.batching import Batching, Reduce
from legnn.training.task import Task

if TYPE_CHECKING:
    from legnn.training.layer_wise import LayerWise

MOST_PROBABILITIES = 2**28
"""Probabilities of all nodes together that are in memory at once, 1 GiB."""

PostProcess = Callable[[Tensor, LabelGraph], Tensor]
"""Changes probabilities `[M, C]` after training; it reads the labels that the graph shows, and no others."""

Predict = Callable[[Tensor, Tensor], Tensor]
"""From the nodes that show their labels and the nodes `[n]` to predict, to a row for each of those, `[n, …]`."""


def to_probabilities(logits: Tensor) -> Tensor:
    """`Ŷ = softmax(logits)` in single precision."""
    return torch.softmax(logits.float(), -1)


def class_and_confidence(probabilities: Tensor) -> Tensor:
    """`[n, 2]` the most probable class of each row of `[n, C]` and its probability, in double precision."""
    p, y = probabilities.max(-1)
    return torch.stack([y.double(), p.double()], 1)


def top_classes(probabilities: Tensor, top: int) -> Tensor:
    """`[n, k, 2]` the `k ≤ top` most probable classes of each row of `[n, C]` and their probabilities, as above."""
    highest = probabilities.topk(min(top, probabilities.size(-1)), -1)
    others = torch.stack([highest.indices[:, 1:].double(), highest.values[:, 1:].double()], -1)
    return torch.cat([class_and_confidence(probabilities)[:, None], others], 1)


def to_class_and_confidence(logits: Tensor) -> Tensor:
    """`[n, 2]` the most probable class and its probability."""
    return class_and_confidence(to_probabilities(logits))


def assign_folds(node_id: np.ndarray, folds: int, division: int = 0) -> Tensor:
    """`[M]` the fold of each node, from its id alone: digit `division` of the hash of its id in base `folds`.

    Not from its position, so that the order of a table does not matter and a node keeps its fold in a graph that grows;
    and not stratified: a fold that depended on a node's label would let the label reach its prediction.
    """
    hashed = _hash_integers(node_id) if node_id.dtype.kind in "iu" else pd.util.hash_array(node_id, categorize=False)
    return torch.from_numpy((hashed // np.uint64(folds) ** np.uint64(division) % np.uint64(folds)).astype(np.int64))


def _hash_integers(values: np.ndarray) -> np.ndarray:
    """`pd.util.hash_array` of integers, the finalizer of SplitMix64, without importing pandas."""
    words = values.view(f"u{values.itemsize}").astype(np.uint64)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def predict_without_own_label(predict: Predict, shown: Tensor, fold: Tensor, nodes: Tensor | None = None) -> Tensor:
    """Rows of `predict` for every node, `[M, …]`, none of which depends on the node's own label. `fold` is `[M]`.

    With `nodes` `[n]`, only those are predicted; they must include all of `shown`, and the rows of the others are zero.

    A node that shows no label is predicted with every label in `shown` in the graph, as the paper does at inference.
    A node of `shown` is predicted with the labels of its fold masked, its own among them, and those of the other folds
    shown. That is no cross-validation: the weights may have been trained on its label.
    """
    if nodes is None:
        out = predict(shown, torch.arange(fold.numel(), device=shown.device)).clone()
    else:
        rows = predict(shown, nodes)
        out = rows.new_zeros(fold.numel(), *rows.shape[1:]).index_copy_(0, nodes, rows)
    for masked, others in split_by_fold(shown, fold):
        out.index_copy_(0, masked, predict(others, masked))
    return out


def split_by_fold(shown: Tensor, fold: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The nodes of `shown` in each fold, which are predicted together, and those in the others, which show labels."""
    fold = fold.to(shown.device)[shown]
    for k in fold.unique().tolist():
        yield shown[fold == k], shown[fold != k]


@dataclass(eq=False)
class Inference:
    """Predicts all nodes of a task (of several node types, those of the labeled one), each without its own label.

    Args:
        predictor: predicts with the labels of some nodes shown.
        fold: `[M]` the fold in which a training node is predicted.
        uses_labels: whether the model does.
        postprocess: applied to the probabilities of all nodes; it sees the labels of the same nodes as the model.
    """

    predictor: Batching | LayerWise
    task: Task
    fold: Tensor
    uses_labels: bool
    postprocess: PostProcess | None = None

    @property
    def nodes(self) -> Tensor:
        """`[n]` the nodes that are predicted."""
        if self.task.targets is not None:
            return self.task.targets
        return torch.arange(self.fold.numel(), device=self.task.train.device)

    @property
    def shown(self) -> Tensor:
        """The nodes whose labels the model sees where all labels are shown; none for one that does not use them."""
        return self.task.train if self.uses_labels else self.task.train[:0]

    def predict(self, reduce: Reduce = class_and_confidence) -> Tensor:
        """`[M, …]` `reduce` of the probabilities of each node: by default its class and confidence, `[M, 2]`."""
        predict = partial(self._reduced, reduce=reduce)
        return predict_without_own_label(predict, self._all_shown, self.fold, self.task.targets)

    def predict_proba(self) -> Tensor:
        """`[M, C]` probabilities."""
        return self.predict(lambda probabilities: probabilities)

    def predict_with_probabilities_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """`predict`, and `proba_of` the ascending `nodes` `[n]`, both on the CPU."""
        if self.fold.numel() * self.task.graph.num_classes > MOST_PROBABILITIES:
            return self.predict().cpu(), self.proba_of(nodes).cpu()
        p = self.predict_proba().cpu()
        return class_and_confidence(p), p[nodes.cpu()]

    def proba_of(self, nodes: Tensor) -> Tensor:
        """`[n, C]` probabilities of `nodes` `[n]`, which ascend; none depends on the node's own label."""
        out = torch.zeros(nodes.numel(), self.task.graph.num_classes, device=nodes.device)
        for part, shown in self.groups(nodes):
            out[torch.searchsorted(nodes, part)] = self.proba(part, shown).to(out)
        return out

    def proba(self, nodes: Tensor, shown: Tensor | None = None) -> Tensor:
        """`[n, C]` probabilities of `nodes` `[n]`, none of which is in `shown`, by default all training nodes."""
        return self._reduced(self._all_shown if shown is None else shown, nodes, lambda probabilities: probabilities)

    def groups(self, nodes: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields parts of `nodes` `[n]` with the nodes that show their labels when `predict` predicts these."""
        shown = self._all_shown
        others = nodes[~torch.isin(nodes, shown)]
        if others.numel():
            yield others, shown
        for masked, visible in split_by_fold(shown, self.fold):
            part = masked[torch.isin(masked, nodes)]
            if part.numel():
                yield part, visible

    @property
    def _all_shown(self) -> Tensor:
        """The training nodes, if their labels reach predictions, by the model or by its post-processing."""
        return self.shown if self.postprocess is None else self.task.train

    def _reduced(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the probabilities of `nodes` `[n]`, the nodes `shown` showing their labels."""
        if self.postprocess is None:
            return self.predictor.logits(shown, nodes, lambda logits: reduce(to_probabilities(logits)))
        p = self._proba_of_all(shown) if self.uses_labels else self._proba_without_labels
        return reduce(self.postprocess(p, self.task.show(shown)).index_select(0, nodes))

    def _proba_of_all(self, shown: Tensor) -> Tensor:
        every = torch.arange(self.fold.numel(), device=shown.device)
        return self.predictor.logits(shown, every, to_probabilities)

    @cached_property
    def _proba_without_labels(self) -> Tensor:
        return self._proba_of_all(self.task.train[:0])
