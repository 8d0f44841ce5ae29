"""How a layer normalizes `A'`: the factors of messages, from the degrees of their source and target."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from legnn.config.model import AbsentLabel as AbsentLabel
from legnn.config.model import Normalize as Normalize
from legnn.graph import LabelGraph
from legnn.ops import Scales


class LabelScales(NamedTuple):
    """Factors of the messages of labels, `[C]` each; None for 1."""

    to_nodes: Tensor | None = None
    """Of what a label sends to the nodes that show it."""
    from_nodes: Tensor | None = None
    """Of what a label receives from the nodes that show it."""
    to_labels: Tensor | None = None
    """Of what a label sends along label–label edges."""
    from_labels: Tensor | None = None
    """Of what a label receives along label–label edges."""


class Normalization(NamedTuple):
    r"""`Â_ij = d_i^target A_ij d_j^source`, with `d` the degrees of incoming edges.

    | | `target` | `source` |
    |---|---|---|
    | GCN | -1/2 | -1/2 |
    | GraphSAGE | -1 | 0 |
    | GAT | 0 | 0 |
    | GAT with `symmetric_norm` | 1/2 | -1/2 |

    All of it is multiplied by `weight`.

    With `kind="joint"` degrees are counted in `A'`. With `"relation"` each block of `A' = [[A, Y], [Yᵀ, S]]` is
    normalized by its own degrees, and a row is the mean of the blocks in which it has edges. In the mean of a node, its
    neighbors weigh `w = node_weight` and its label 1: `(w m_N + m_L) / (w [it has neighbors] + [it shows a label])`.
    With `absent_label="zero"` the denominator is `w + 1` for every node.
    """

    kind: Normalize
    target: float
    source: float
    zero_degree: float = 1.0
    """Factor of a node without incoming edges."""
    is_softmax: bool = False
    """Whether edges have attention, which sums to 1, in place of their weight."""
    scaled_scores: bool = False
    """Attention: whether the scores of sources are multiplied by `d_j^source`, as the messages are."""
    node_weight: float = 1.0
    absent_label: AbsentLabel = "skip"
    weight: float = 1.0
    """Factor of all messages, beside a term that is added to them; needs a `target` other than 0."""

    def scales(self, graph: LabelGraph, x: Tensor, *, enhanced: bool) -> tuple[Scales, LabelScales]:
        """The factors for messages `x`, computed once for a graph; `enhanced=False` for messages along `A` alone."""
        # degrees exceed what bf16 can count
        dtype = torch.promote_types(x.dtype, torch.float32)

        def make() -> tuple[Scales, LabelScales]:
            return self._weigh(*self._scales(graph, dtype, enhanced))

        return graph.cached((self, enhanced, dtype), make)

    def _power(self, degree: Tensor, exponent: float, dtype: torch.dtype) -> Tensor | None:
        if exponent == 0:
            return None
        degree = degree.to(dtype)
        return torch.where(degree == 0, self.zero_degree, degree.pow(exponent))

    def _edge_scales(self, graph: LabelGraph, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
        """The factors of sources and targets along `A`, normalized by its own degrees."""
        # a sampled edge counts for several in a sum, but attention is a mean already
        multiplicity = None if self.is_softmax else graph.multiplicity

        def make() -> tuple[Tensor | None, Tensor | None]:
            target = self._power(graph.degree, self.target, dtype)
            return self._power(graph.source_degree, self.source, dtype), _times(target, multiplicity)

        return graph.adjacency.cached((self, dtype), make)

    def _means(
        self, graph: LabelGraph, target: Tensor | None, shows: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """`[M]` what messages from labels, and those from neighbors, are multiplied by at their targets."""
        mean = self._node_mean(graph.degree, shows, dtype)
        scaled = _times(target, mean if self.node_weight == 1 else self.node_weight * mean)
        assert scaled is not None
        return mean, scaled

    def _scales(self, graph: LabelGraph, dtype: torch.dtype, enhanced: bool) -> tuple[Scales, LabelScales]:
        def power(degree: Tensor, exponent: float) -> Tensor | None:
            return self._power(degree, exponent, dtype)

        multiplicity = None if self.is_softmax else graph.multiplicity
        label_multiplicity = None if self.is_softmax else graph.label_multiplicity
        if enhanced and self.kind == "joint":
            source, target = power(graph.source_node_degree, self.source), power(graph.node_degree, self.target)
            label_source, label_target = (power(graph.label_degree, one) for one in (self.source, self.target))
            nodes = Scales(source, _times(target, multiplicity), target, source, self._score(source), True)
            return nodes, LabelScales(
                label_source, _times(label_target, label_multiplicity), label_source, label_target
            )

        source, target = self._edge_scales(graph, dtype)
        if not enhanced:
            return Scales(source, target, score=self._score(source)), LabelScales()
        mean, node_mean = self._means(graph, target, graph.label_degree_of_node, dtype)
        # a node has one label edge: in Y only the labels have a degree to divide by; without exponents none is counted
        label_target = power(graph.label_count, self.target) if self.target else None
        label_source = label_target
        if self.source != self.target:
            label_source = power(graph.label_count, self.source)
        labels = LabelScales(label_source, _times(label_target, label_multiplicity))
        if graph.label_adjacency is not None:
            # without label–label edges all of them are of one kind
            label_mean, degree = graph.label_relations.to(dtype).reciprocal(), graph.label_adjacency.sum(1)
            labels = labels._replace(
                from_nodes=_times(labels.from_nodes, label_mean),
                to_labels=power(degree, self.source),
                from_labels=_times(power(degree, self.target), label_mean),
            )
        return Scales(source, node_mean, mean, score=self._score(source)), labels

    def _weigh(self, nodes: Scales, labels: LabelScales) -> tuple[Scales, LabelScales]:
        if self.weight == 1:
            return nodes, labels
        nodes = nodes._replace(target=self._times_weight(nodes.target), from_label=self._times_weight(nodes.from_label))
        from_nodes, from_labels = (self._times_weight(one) for one in (labels.from_nodes, labels.from_labels))
        return nodes, labels._replace(from_nodes=from_nodes, from_labels=from_labels)

    def _times_weight(self, scale: Tensor | None) -> Tensor | None:
        # None where there are no such messages
        return None if scale is None else self.weight * scale

    def _score(self, source: Tensor | None) -> Tensor | None:
        return source if self.scaled_scores else None

    def _node_mean(self, degree: Tensor, shows: Tensor, dtype: torch.dtype) -> Tensor:
        """`[M]` what a message from a label is multiplied by in the mean; one from neighbors, by `w` times that."""
        if self.absent_label == "zero":
            return torch.full_like(degree, 1 / (self.node_weight + 1), dtype=dtype)
        # of how many kinds, from nodes and from labels, the incoming edges of each target are
        relations = ((degree > 0).to(dtype) + shows).clamp(min=1)
        if self.node_weight != 1:
            relations = torch.where(degree > 0, relations - 1 + self.node_weight, relations)
        return relations.reciprocal()


def _times(scale: Tensor | None, factor: Tensor | None) -> Tensor | None:
    if scale is None or factor is None:
        return factor if scale is None else scale
    return scale * factor.to(scale.dtype)
