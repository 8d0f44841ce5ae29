"""Correct and Smooth (Huang et al., 2021): post-processing of probabilities by the labels of neighbors."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.baselines.label_propagation import diffuse, normalize_rows, shown_one_hot
from legnn.graph import LabelGraph


class CorrectAndSmooth:
    """Spreads the errors at the nodes that show their labels, then the corrected probabilities.

    As in PyG's `CorrectAndSmooth` with `autoscale`, with one number of steps and one `α` for both; rows are normalized
    at the end. Only `[M, C]` matrices are allocated, where PyG's needs `[E, C]`.
    """

    def __init__(self, steps: int, alpha: float) -> None:
        self.steps, self.alpha = steps, alpha

    def __call__(self, probabilities: Tensor, graph: LabelGraph) -> Tensor:
        """`[M, C]` from `[M, C]`; the labels that `graph` shows are used, and no others."""
        return normalize_rows(self.smooth(self.correct(probabilities, graph), graph))

    def correct(self, z: Tensor, graph: LabelGraph) -> Tensor:
        """`Z + γ_i Ê`: `Ê` diffuses `E = Y - Z` of the shown nodes, `γ_i` scales a row to their mean error."""
        truth = shown_one_hot(graph)
        error = torch.zeros_like(z).index_copy(0, graph.shown, (truth - z).index_select(0, graph.shown))
        spread = diffuse(graph, error, self.steps, self.alpha, least=-1.0)
        mean = error.abs().sum() / max(graph.shown.numel(), 1)
        scale = mean / spread.abs().sum(1, keepdim=True)
        # where no error arrived there is nothing to scale
        return z + scale.where(scale <= 1000, 1.0) * spread

    def smooth(self, z: Tensor, graph: LabelGraph) -> Tensor:
        """Diffuses `Z`, with the true labels in the rows of the shown nodes."""
        rows = shown_one_hot(graph).index_select(0, graph.shown)
        return diffuse(graph, z.index_copy(0, graph.shown, rows), self.steps, self.alpha)
