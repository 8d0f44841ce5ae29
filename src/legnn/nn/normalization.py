"""Normalization of `A'`: the factors of messages, from the degrees of their source and target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.config.model import Normalize
from legnn.graph.label_graph import LabelGraph
from legnn.ops.types import Scales


class LabelScales(NamedTuple):
    """Factors of the messages of labels, `[C]` each; None for 1."""

    to_nodes: Tensor | None = None
    """Factor of the message of a label to the nodes that show it."""
    from_nodes: Tensor | None = None
    """Factor of the sum that a label receives from the nodes that show it."""
    to_labels: Tensor | None = None
    """Factor of the message of a label along label–label edges."""
    from_labels: Tensor | None = None
    """Factor of the sum that a label receives along label–label edges."""


@dataclass(frozen=True)
class Normalization:
    r"""`Â_ij = d_i^target A_ij d_j^source`, with `d` the degrees of incoming edges.

    | | `target` | `source` |
    |---|---|---|
    | GCN | -1/2 | -1/2 |
    | GraphSAGE | -1 | 0 |
    | GAT | 0 | 0 |

    With `kind="joint"` degrees are counted in `A'`. With `"relation"` each block of `A' = [[A, Y], [Yᵀ, S]]` is
    normalized by its own degrees, and a row is the mean of the blocks in which it has edges.
    """

    kind: Normalize
    target: float
    source: float
    zero_degree: float = 1.0
    """Factor of a node without incoming edges."""
    is_softmax: bool = False
    """Whether edges have attention, which sums to 1, in place of their weight."""

    def scales(self, graph: LabelGraph, x: Tensor, *, enhanced: bool) -> tuple[Scales, LabelScales]:
        """The factors for messages `x`, computed once for a graph; `enhanced=False` for messages along `A` alone."""
        # degrees exceed what bf16 can count
        dtype = torch.promote_types(x.dtype, torch.float32)
        return graph.cached((self, enhanced, dtype), lambda: self.compute_scales(graph, dtype, enhanced=enhanced))

    def compute_scales(self, graph: LabelGraph, dtype: torch.dtype, *, enhanced: bool) -> tuple[Scales, LabelScales]:
        """The factors in `dtype`."""
        if enhanced and self.kind == "joint":
            return self._joint_scales(graph, dtype)

        def edge_scales() -> tuple[Tensor | None, Tensor | None]:
            target = _times(self._power(graph.degree, self.target, dtype), self._multiplicity(graph))
            return self._power(graph.source_degree, self.source, dtype), target

        source, target = graph.edge_cache.cached((self, dtype), edge_scales)
        if not enhanced:
            return Scales(source, target), LabelScales()
        shows = graph.label_degree_of_node.to(dtype)
        of_neighbors, of_label = self.relation_weights((graph.degree > 0).to(dtype), shows)
        # a node has one label edge: in Y only the labels have a degree to divide by; without exponents none is counted
        label_target = self._power(graph.label_count, self.target, dtype) if self.target else None
        label_source = label_target
        if self.source != self.target:
            label_source = self._power(graph.label_count, self.source, dtype)
        labels = LabelScales(label_source, _times(label_target, self._label_multiplicity(graph)))
        if graph.label_adjacency is not None:
            # without label–label edges all of them are of one kind
            label_mean, degree = graph.label_relations.to(dtype).reciprocal(), graph.label_adjacency.sum(1)
            labels = labels._replace(
                from_nodes=_times(labels.from_nodes, label_mean),
                to_labels=self._power(degree, self.source, dtype),
                from_labels=_times(self._power(degree, self.target, dtype), label_mean),
            )
        return Scales(source, _times(target, of_neighbors), of_label), labels

    def relation_weights(self, has_neighbors: Tensor, shows: Tensor) -> tuple[Tensor, Tensor]:
        """`[M]` what the sum over the neighbors of a node, and the message of its label, are multiplied by.

        `has_neighbors` and `shows` `[M]` are 1 or 0.
        """
        mean = (has_neighbors + shows).clamp(min=1).reciprocal()
        return mean, mean

    def _joint_scales(self, graph: LabelGraph, dtype: torch.dtype) -> tuple[Scales, LabelScales]:
        source = self._power(graph.source_node_degree, self.source, dtype)
        target = self._power(graph.node_degree, self.target, dtype)
        label_source = self._power(graph.label_degree, self.source, dtype)
        label_target = self._power(graph.label_degree, self.target, dtype)
        from_nodes = _times(label_target, self._label_multiplicity(graph))
        nodes = Scales(source, _times(target, self._multiplicity(graph)), target, source)
        return nodes, LabelScales(label_source, from_nodes, label_source, label_target)

    def _power(self, degree: Tensor, exponent: float, dtype: torch.dtype) -> Tensor | None:
        if exponent == 0:
            return None
        degree = degree.to(dtype)
        return torch.where(degree == 0, self.zero_degree, degree.pow(exponent))

    # a sampled edge counts for several in a sum, but attention is a mean already

    def _multiplicity(self, graph: LabelGraph) -> Tensor | None:
        return None if self.is_softmax else graph.multiplicity

    def _label_multiplicity(self, graph: LabelGraph) -> Tensor | None:
        return None if self.is_softmax else graph.label_multiplicity


def _times(scale: Tensor | None, factor: Tensor | None) -> Tensor | None:
    if scale is None or factor is None:
        return factor if scale is None else scale
    return scale * factor.to(scale.dtype)
