"""Features that are mostly zeros, such as word counts, kept as their entries alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.graph.adjacency import Adjacency
from legnn.ops import project_entries

SPARSE_BELOW = 0.2
"""Features with a smaller fraction of entries are kept sparse: on CiteSeer (0.9 %) an epoch is then several times
faster, most of it saved in the dropout of zeros."""


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """`X` `[M, F]` in compressed rows."""

    rows: Adjacency
    """Columns are features, weights their values."""
    dense: Tensor
    """The same as a plain tensor, for the few who need whole rows."""

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseFeatures:
        """Keep the entries of `x` `[M, F]` that are not zero."""
        node, feature = x.nonzero(as_tuple=True)
        rows = Adjacency.from_sorted(node, feature, x[node, feature], x.size(0), x.size(1))
        return cls(rows, x)

    @cached_property
    def order(self) -> Tensor:
        """`[entries]` where each entry of `Xᵀ` stands in `X`, so that new values need no new sorting."""
        return torch.argsort(self.rows.col * self.rows.num_rows + self.rows.row, stable=True)

    def project(self, weight: Tensor, dropout: float, training: bool) -> Tensor:
        """`dropout(X) P` for `weight` `Pᵀ` `[D, F]`; gives `[M, D]`."""
        values = self.rows.weight
        assert values is not None
        return project_entries(self.rows, F.dropout(values, dropout, training), self.order, weight)


Features = Tensor | SparseFeatures


def compact(x: Tensor) -> Features:
    """`x` `[M, F]`, sparse where that pays."""
    few = x.numel() > 0 and float((x != 0).float().mean()) < SPARSE_BELOW
    return SparseFeatures.from_dense(x) if few else x
