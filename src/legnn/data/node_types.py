"""Node types of a heterogeneous graph, and the edges between them."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import torch
from torch import Tensor

Relation = tuple[str, str, str]
"""Source type, name, target type."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeTypes:
    """The types of the nodes of a graph. Only nodes of the type `target` have labels and are predicted."""

    names: list[str]
    node_type: Tensor
    """`[M]` int64, an index into `names`."""
    target: str
    columns: list[list[str]]
    """The names of the features of each type, of which a node has no others: the rest of its row is zero."""

    @cached_property
    def target_mask(self) -> Tensor:
        """`[M]` bool, nodes of the type `target`."""
        return self.node_type == self.names.index(self.target)


@dataclass(frozen=True, eq=False)
class TypedEdges:
    """Node types and the relations between them. All nodes together are numbered type after type."""

    sizes: dict[str, int]
    """Nodes of each type, in the order of the types."""
    relations: dict[Relation, Tensor]
    """`[2, E]` of each relation: source and target, each numbered within its type."""

    @property
    def rows(self) -> dict[str, slice]:
        """The rows of each type among all nodes."""
        bounds = pairwise(accumulate(self.sizes.values(), initial=0))
        return {name: slice(*ends) for name, ends in zip(self.sizes, bounds, strict=True)}

    @property
    def num_nodes(self) -> int:
        """`M`, over all types."""
        return sum(self.sizes.values())

    def edge_index(self) -> Tensor:
        """Returns all edges `[2, E]`, relation after relation, in the numbering of all nodes."""
        rows = self.rows
        parts = [
            edges + torch.tensor([[rows[source].start], [rows[target].start]])
            for (source, _, target), edges in self.relations.items()
        ]
        return torch.cat(parts, 1) if parts else torch.empty(2, 0, dtype=torch.int64)

    def between(self) -> dict[tuple[str, str], Tensor]:
        """Returns the edges `[2, E]` between each pair of types, of every relation and in both directions."""
        found: dict[tuple[str, str], list[Tensor]] = {}
        for (source, _, target), edges in self.relations.items():
            if edges.size(1):
                found.setdefault((source, target), []).append(edges)
                found.setdefault((target, source), []).append(edges.flip(0))
        return {pair: torch.cat(edges, 1) for pair, edges in found.items()}
