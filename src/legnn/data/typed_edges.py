"""Relations between nodes of several types, and the same edges in one numbering of all nodes."""

from dataclasses import dataclass

import torch
from torch import Tensor

Relation = tuple[str, str, str]
"""Type of the source, name, type of the target."""


@dataclass(frozen=True, eq=False)
class TypedEdges:
    """Node types and the relations between them. All nodes together are numbered type after type."""

    sizes: dict[str, int]
    """Nodes of each type, in the order of the types."""
    relations: dict[Relation, Tensor]
    """`[2, E]` of each relation: source and target, each numbered within its type."""

    @property
    def starts(self) -> dict[str, int]:
        """The number of each type's first node."""
        starts, start = {}, 0
        for name, size in self.sizes.items():
            starts[name] = start
            start += size
        return starts

    @property
    def num_nodes(self) -> int:
        """`M`, over all types."""
        return sum(self.sizes.values())

    def edge_index(self) -> Tensor:
        """`[2, E]` all edges, relation after relation, in the numbering of all nodes."""
        starts = self.starts
        parts = [
            edges + torch.tensor([[starts[source]], [starts[target]]])
            for (source, _, target), edges in self.relations.items()
        ]
        return torch.cat(parts, 1) if parts else torch.empty(2, 0, dtype=torch.int64)

    def between(self) -> dict[tuple[str, str], Tensor]:
        """`[2, E]` for each pair of types with edges between them: those of every relation, there and back."""
        found: dict[tuple[str, str], list[Tensor]] = {}
        for (source, _, target), edges in self.relations.items():
            if edges.size(1):
                found.setdefault((source, target), []).append(edges)
                found.setdefault((target, source), []).append(edges.flip(0))
        return {pair: torch.cat(edges, 1) for pair, edges in found.items()}
