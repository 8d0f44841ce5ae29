"""Label propagation (Zhu and Ghahramani, 2002), a model without parameters."""

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
