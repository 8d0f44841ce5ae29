"""Label propagation (Zhu and Ghahramani, 2002), and Correct and Smooth (Huang et al., 2021), which spreads errors."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.baselines.propagation import gcn_propagate
from legnn.graph import LabelGraph
from legnn.nn import Model


def diffuse(graph: LabelGraph, x: Tensor, steps: int, alpha: float, least: float = 0.0) -> Tensor:
    """`X^{k+1} = clamp(α Â X^k + (1 - α) X⁰, least, 1)`, `Â = D^{-1/2} A D^{-1/2}`; `x` is `X⁰` `[M, C]`."""
    restart = (1 - alpha) * x
    for _ in range(steps):
        x = alpha * gcn_propagate(graph, x) + restart
        x = x.clamp(least, 1)
    return x


def shown_one_hot(graph: LabelGraph) -> Tensor:
    """`Y` `[M, C]`: one-hot rows of the nodes that show their label, zero for the others."""
    # not `one_hot`, which may synchronize to check the classes
    rows = torch.zeros(graph.y.numel(), graph.num_classes, device=graph.y.device).scatter(1, graph.y[:, None], 1.0)
    return rows.new_zeros(graph.num_nodes, graph.num_classes).index_copy(0, graph.shown, rows)


def normalize_rows(x: Tensor) -> Tensor:
    """Non-negative `x` `[n, C]` with rows that sum to 1, uniform where a row is zero."""
    total = x.sum(1, keepdim=True)
    return torch.where(total > 0, x / total.clamp(min=torch.finfo(x.dtype).tiny), 1 / x.size(1))


class LabelPropagation(Model):
    """`F^{k+1} = α Â F^k + (1 - α) Y`, `F⁰ = Y`, where `Y` are the shown labels; as in PyG's `LabelPropagation`."""

    full_batch_reason = "it has nothing to train"
    uses_labels = True

    def __init__(self, steps: int, alpha: float) -> None:
        super().__init__()
        self.steps, self.alpha = steps, alpha

    def prepare(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> None:
        """None: features are not used."""

    def spread(self, graph: LabelGraph) -> Tensor:
        """`F^K` `[M, C]`."""
        return diffuse(graph, shown_one_hot(graph), self.steps, self.alpha)

    def classes(self, graph: LabelGraph) -> Tensor:
        """`[M]` the class with the largest entry in each row of `F^K`, -1 where no label has arrived."""
        largest, y = self.spread(graph).max(1)
        return y.where(largest > 0, -1)

    def forward(self, inputs: None, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`: the logarithms of the rows of `F^K`, which sum to 1."""
        p = normalize_rows(self.spread(graph))
        # a logarithm of zero would make the loss infinite
        return p.clamp(min=torch.finfo(p.dtype).tiny).log()


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
