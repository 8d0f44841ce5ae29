"""Node types of a heterogeneous graph, and the edges between them."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

Relation = tuple[str, str, str]
"""Source type, name, target type."""

EdgesByTypes = dict[tuple[str, str], Tensor]
"""The edges `[2, E]` from each type to each that it has edges to, in the numbering of all nodes."""


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

    def relations(self, source: Tensor, target: Tensor) -> list[tuple[int, int]]:
        """Returns the source and target type of the edges that there are, ascending."""
        pair = self.node_type[source] * len(self.names) + self.node_type[target]
        return [divmod(number, len(self.names)) for number in pair.unique().tolist()]

    def edges(self, edge_index: Tensor) -> EdgesByTypes:
        """Returns the edges between each pair of types, those of `edge_index` `[2, E]` in both directions."""
        both = torch.cat([edge_index, edge_index.flip(0)], 1)
        source, target = self.node_type[both]
        return {
            (self.names[i], self.names[j]): both[:, (source == i) & (target == j)] for i, j in self.relations(*both)
        }
