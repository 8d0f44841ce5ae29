"""Features that are mostly zeros, such as word counts, kept as their entries alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from legnn.graph.adjacency import Adjacency
from legnn.ops import drop, project_entries
from legnn.ops.layout import lanes, widen

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
    def from_dense(cls, x: Tensor, dtype: torch.dtype | None = None) -> SparseFeatures:
        """Keep the entries of `x` `[M, F]` that are not zero."""
        node, feature = x.nonzero(as_tuple=True)
        rows = Adjacency.from_sorted(node, feature, x[node, feature], x.size(0), x.size(1))
        return cls(rows, x, dtype or x.dtype)

    dtype: torch.dtype = torch.float32
    """The precision of what is made from them."""

    def project(self, weight: Tensor, dropout: float, training: bool) -> Tensor:
        """`dropout(X) P` for `weight` `Pᵀ` `[D, F]`; gives `[M, D]`."""
        values = self.rows.weight
        assert values is not None
        values = drop(values[None], dropout, training=training)[0]
        out = project_entries(self.rows, values, weight).to(self.dtype)
        return widen(out, lanes(out.size(1), out))


Features = Tensor | SparseFeatures


def spread(x: Tensor, node_type: Tensor, num_types: int) -> Tensor:
    """Row `i` of `x` `[n, F]` in the columns of its type, `t F` to `(t + 1) F`, of `[n, T F]`.

    One matrix of `T F` rows is then a matrix of `F` rows for each type.
    """
    out = x.new_zeros(x.size(0), num_types, x.size(1))
    out[torch.arange(x.size(0), device=x.device), node_type] = x
    return out.flatten(1)


def compact(x: Tensor, dtype: torch.dtype | None = None) -> Features:
    """`x` `[M, F]` in the precision asked for, sparse where that pays."""
    dtype = dtype or x.dtype
    few = x.numel() > 0 and float((x != 0).float().mean()) < SPARSE_BELOW
    if few:
        return SparseFeatures.from_dense(x, dtype)
    x = x.to(dtype)
    return widen(x, lanes(x.size(1), x))
