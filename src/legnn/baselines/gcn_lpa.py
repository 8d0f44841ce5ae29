"""GCN-LPA (Wang and Leskovec, 2020): edge weights that propagate labels well, learned beside the convolutions."""

from __future__ import annotations

from typing import Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn

from legnn.baselines.label_propagation import normalize_rows, shown_one_hot
from legnn.baselines.projected import Times, WholeGraphGCN
from legnn.baselines.propagation import neighbor_sum
from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import DataShape
from legnn.nn.features import Features

CHUNK = 2**26
"""Most entries of the two matrices of rows that a gradient of the edges takes at once."""


class GCNLPA(WholeGraphGCN):
    """GCN over `A* = softmax(θ)`, where the softmax of an edge's `θ` is over the edges of its target.

    Beside its loss there is that of label propagation over the same `A*`, times `lpa_weight`: from the nodes that show
    their labels to those that are predicted, `F^{k+1} = A* F^k`, `F⁰ = Y`, with the rows of nodes that show labels set
    back to `Y` in every step. There are as many steps as layers. `θ` starts at 0, where `A* = D^{-1} A`; given edge
    weights are factors of `exp(θ)`.

    It fits ogbn-arxiv: with 3 layers of 256 (2.5 million edges), a process on the CPU took 3.2 GiB, which are 0.2 GiB
    for each `[M, D]` and 0.8 GiB for a chunk of edges.
    """

    full_batch_reason = "it has a weight for every edge"
    uses_labels = True
    edges: Tensor
    """A number that tells the edges of the first graph, that of training, from others; 0 before there is one."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.steps, self.lpa_weight = settings.layers, settings.gcn_lpa.loss_weight
        self.theta = nn.Parameter(torch.zeros(data.edges))
        self.register_buffer("edges", torch.zeros((), dtype=torch.long))
        self._checked: ReferenceType[Adjacency] | None = None

    def times(self, graph: LabelGraph, dtype: torch.dtype) -> Times:
        """`x ↦ A* x`."""
        adjacency = graph.adjacency
        self._check(adjacency)
        weight = self.theta.exp()
        if adjacency.weight is not None:
            weight = weight * adjacency.weight.to(weight.dtype)
        ones = torch.ones(adjacency.num_cols, 1, dtype=weight.dtype, device=weight.device)
        total = edge_product(adjacency, weight, ones)
        # a node without edges receives nothing
        inverse = torch.where(total > 0, total, 1.0).reciprocal()
        return lambda x: inverse.to(x.dtype) * edge_product(adjacency, weight, x)

    def auxiliary(self, inputs: Features, graph: LabelGraph) -> tuple[float, Tensor]:
        """The weight of the loss of label propagation, and the logarithms of its probabilities `[M, C]`."""
        times = self.times(graph, self.theta.dtype)
        start = shown_one_hot(graph).to(self.theta.dtype)
        labels, rows = start, start.index_select(0, graph.shown)
        for _ in range(self.steps):
            labels = times(labels).index_copy(0, graph.shown, rows)
        p = normalize_rows(labels)
        # a logarithm of zero would make the loss infinite
        return self.lpa_weight, p.clamp(min=torch.finfo(p.dtype).tiny).log()

    def _check(self, adjacency: Adjacency) -> None:
        """Raises `InputError` for other edges than those of training, which have no weights."""
        # once for a graph: reading the answer synchronizes
        if self._checked is not None and self._checked() is adjacency:
            return
        number = _number(adjacency)
        if adjacency.num_edges == self.theta.numel() and not bool(self.edges):
            self.edges.copy_(number)
        elif adjacency.num_edges != self.theta.numel() or not torch.equal(number, self.edges):
            raise InputError(
                f"gcn_lpa has a weight for each of the {self.theta.numel():,} edges it was trained on, and none for "
                "those of another graph; train on this graph, or train another architecture"
            )
        self._checked = ref(adjacency)


def _number(adjacency: Adjacency) -> Tensor:
    """An integer that other edges, or the same in another order, have only by accident."""
    row, col = adjacency.row.long(), adjacency.col.long()
    # odd factors, so that nothing is lost where the products overflow
    odd_factor = 2 * torch.arange(row.numel(), device=row.device) + 1
    return ((row * 2_654_435_761 + col) * odd_factor).sum()


def edge_product(adjacency: Adjacency, weight: Tensor, x: Tensor) -> Tensor:
    """`out_i = Σ_e w_e x_j` over the edges `e = (i, j)`, differentiable in `weight` `[edges]` and `x` `[cols, D]`.

    No tensor of features per edge is kept: the gradient of an edge, `g_i · x_j`, is computed in chunks of edges.
    """
    return _EdgeProduct.apply(adjacency, weight, x)


class _EdgeProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, adjacency: Adjacency, weight: Tensor, x: Tensor) -> Tensor:
        ctx.adjacency = adjacency
        ctx.save_for_backward(weight, x)
        return neighbor_sum(LabelGraph.without_labels(adjacency.with_weight(weight), 1), x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        weight, x = ctx.saved_tensors
        adjacency, gradient = ctx.adjacency, gradients[0].contiguous()
        d_weight = d_x = None
        if ctx.needs_input_grad[1]:
            # of two rows, the products are summed in the precision of the weights
            edges = max(CHUNK // max(x.size(1), 1), 1)
            parts = zip(adjacency.row.split(edges), adjacency.col.split(edges), strict=True)
            products = (gradient.index_select(0, row).to(weight.dtype) * x.index_select(0, col) for row, col in parts)
            d_weight = torch.cat([product.sum(1) for product in products]).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            d_x = neighbor_sum(
                LabelGraph.without_labels(adjacency.with_weight_both_ways(weight).transpose, 1), gradient
            )
        return None, d_weight, d_x
