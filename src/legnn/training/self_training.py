"""Other rules of self-training: which candidates get a pseudo label. They count as in AS-Train, `λ · TC · EC_i`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from legnn.training.objective import ASTrain


class TopK(ASTrain):
    """A pseudo label for the `per_class` most confident candidates of each predicted class, without a threshold."""

    def may_select(self, confidence: float) -> bool:
        """Whether a pseudo label would count at all."""
        return confidence > 0

    def is_confident(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> Tensor:
        """`[U]` bool: `rank_i < per_class`, the rank by `p_i` among candidates of the same `y_i`, ties by position."""
        # two stable sorts: by probability, then by class, so that the members of a class lie together, the surest first
        order = p.argsort(descending=True, stable=True)
        order = order[y[order].argsort(stable=True)]
        classes = y[order]
        rank = torch.arange(classes.numel(), device=classes.device) - torch.searchsorted(classes, classes)
        return torch.zeros_like(y, dtype=torch.bool).index_copy(0, order, rank < self.settings.per_class)


@dataclass(frozen=True)
class Agreement(ASTrain):
    """A pseudo label for each candidate with `p_i · TC > t` whose class a second model predicts too.

    Li et al. (2018) train a GCN together with a random walk from the labels; here the second model is one that does
    not change, such as label propagation from the training labels. A candidate is never a training node, so its own
    label is in neither opinion.
    """

    opinions: Tensor
    """`[M]` the class that the second model predicts of each node, -1 where it has none."""

    def is_confident(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> Tensor:
        """`[U]` bool: `p_i · TC > t` and `y_i = opinions_i`."""
        return super().is_confident(nodes, y, p, confidence) & (y == self.opinions.index_select(0, nodes))
