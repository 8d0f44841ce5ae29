"""The edges of a graph with several node types, relation by relation.

All nodes are in one numbering, and a relation is a pair of types: that of the source and that of the target of an
edge. Two relations that join the same types are one here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.graph.label_graph import LabelGraph
from legnn.ops.csr.adjacency import Adjacency, inverse_permutation

Relation = tuple[int, int]
"""Source and target type."""

SINGLE_RELATION: tuple[Relation, ...] = ((0, 0),)
"""The relations of a homogeneous graph."""


class NodesByType(NamedTuple):
    """Nodes grouped by type."""

    counts: tuple[int, ...]
    """Nodes of each type."""
    order: Tensor | None = None
    """`[n]` the nodes sorted by type; None where they are in this order."""
    position: Tensor | None = None
    """`[n]` the position of each node in `order`."""

    @classmethod
    def group(cls, types: Tensor, counts: Sequence[int], *, is_sorted: bool) -> NodesByType:
        """From the types `[n]` and how many nodes each has; does not synchronize."""
        order = None if is_sorted else types.argsort(stable=True)
        return cls(tuple(counts), order, None if order is None else inverse_permutation(order))

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """The rows `[n_t, D]` of each type, for `x` `[n, D]` or longer."""
        if len(self.counts) == 1:
            # a slice of everything would still cost a pass over [n, D] in the gradient
            return (x if x.size(0) == self.counts[0] else x[: self.counts[0]],)
        if self.order is not None:
            return x.index_select(0, self.order).split(self.counts)
        n = sum(self.counts)
        return (x if x.size(0) == n else x[:n]).split(self.counts)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """`[n, D]` from the rows `[n_t, D]` of each type."""
        rows = parts[0] if len(parts) == 1 else torch.cat(list(parts))
        return rows if self.position is None else rows.index_select(0, self.position)


@dataclass(frozen=True, eq=False)
class RelationGraph:
    """The edges of each relation, as a bipartite graph between the nodes of two types."""

    sources: NodesByType
    """The `N` source nodes."""
    targets: NodesByType
    """The `M` target nodes."""
    relations: dict[Relation, LabelGraph]
    """`[M_t, N_s]` of each relation, without labels; its nodes are numbered within their types."""
    pair: Tensor | None
    """`[E]` the relation of each edge of the whole adjacency, `s T + t`; None where there is one."""
    adjacency: Adjacency
    """All edges together."""

    @cached_property
    def table_row(self) -> Tensor:
        """`[E]` the row of each edge's source in a table `[Σ_r N_s(r), …]` of what it sends along each relation."""
        col = self.adjacency.col.long()
        if self.pair is None:
            return col
        counts, number = self.sources.counts, len(self.sources.counts)
        ahead = accumulate((counts[source] for source, _ in self.relations), initial=0)
        starts = list(accumulate(counts, initial=0))
        # a source's position among all nodes sorted by type becomes one within its part of the table
        shift = [0] * number**2
        for (source, target), offset in zip(self.relations, ahead, strict=False):
            shift[source * number + target] = offset - starts[source]
        position = col if self.sources.position is None else self.sources.position.index_select(0, col)
        return position + torch.tensor(shift, device=col.device).index_select(0, self.pair)


def relation_graph(graph: LabelGraph, num_types: int, relations: Sequence[Relation]) -> RelationGraph:
    """Returns the edges of `graph` by relation, grouped once for an adjacency.

    It synchronizes once. Raises `InputError` for an edge of a relation that is not in `relations`.
    """

    def make() -> RelationGraph:
        if num_types > 1:
            return _group(graph, num_types, relations)
        adjacency = graph.adjacency
        edges = {SINGLE_RELATION[0]: LabelGraph.without_labels(adjacency, graph.num_classes)}
        sources, targets = NodesByType((adjacency.num_cols,)), NodesByType((adjacency.num_rows,))
        return RelationGraph(sources, targets, edges, None, adjacency)

    return graph.edge_cache.cached(("edges by relation", num_types, tuple(relations)), make)


def _group(graph: LabelGraph, num_types: int, relations: Sequence[Relation]) -> RelationGraph:
    adjacency, types = graph.adjacency, graph.node_type
    if types is None:
        raise InputError(f"the model is one of {num_types} node types, and the graph has one; give a graph with types")
    target_types = types[: adjacency.num_rows]
    pair = types.index_select(0, adjacency.col) * num_types + target_types.index_select(0, adjacency.row)
    facts = [_count(types, num_types), _count(target_types, num_types), _count(pair, num_types**2)]
    facts.append((types[1:] < types[:-1]).any().long()[None])
    numbers = torch.cat(facts).tolist()
    edge_counts = numbers[2 * num_types : -1]
    _check_known(edge_counts, num_types, relations)
    # in a whole graph, nodes are numbered type after type
    is_sorted = not numbers[-1]
    sources = NodesByType.group(types, numbers[:num_types], is_sorted=is_sorted)
    targets = NodesByType.group(target_types, numbers[num_types : 2 * num_types], is_sorted=is_sorted)
    order = pair.argsort(stable=True)
    row = _within_type(targets, target_types).index_select(0, adjacency.row).index_select(0, order)
    col = _within_type(sources, types).index_select(0, adjacency.col).index_select(0, order)
    weight = None if adjacency.weight is None else adjacency.weight.index_select(0, order)
    ends = list(accumulate(edge_counts, initial=0))
    edges: dict[Relation, LabelGraph] = {}
    for source, target in relations:
        number = source * num_types + target
        span = slice(ends[number], ends[number + 1])
        part = Adjacency.from_sorted(
            row[span], col[span], None if weight is None else weight[span], targets.counts[target],
            sources.counts[source],
        )  # fmt: skip
        part = replace(part, is_sample=adjacency.is_sample, chunking=adjacency.chunking)
        edges[source, target] = LabelGraph.without_labels(part, graph.num_classes)
    return RelationGraph(sources, targets, edges, pair, adjacency)


def _count(values: Tensor, number: int) -> Tensor:
    """`[number]` how often each number below it occurs; unlike `bincount`, without synchronizing."""
    return torch.zeros(number, dtype=torch.long, device=values.device).index_add(0, values, torch.ones_like(values))


def _check_known(edge_counts: list[int], num_types: int, relations: Sequence[Relation]) -> None:
    known = set(relations)
    for number, count in enumerate(edge_counts):
        source, target = divmod(number, num_types)
        if count and (source, target) not in known:
            raise InputError(
                f"there are edges from nodes of type {source} to nodes of type {target}, and none when the model was "
                f"made; take them out, or train a model on a graph with such edges"
            )


def _within_type(nodes: NodesByType, types: Tensor) -> Tensor:
    """`[n]` the number of each node among those of its type."""
    first = torch.tensor([0, *accumulate(nodes.counts[:-1])], device=types.device)
    position = torch.arange(types.numel(), device=types.device) if nodes.position is None else nodes.position
    return position - first.index_select(0, types)
