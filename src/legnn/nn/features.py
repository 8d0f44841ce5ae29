"""Features without their zeros: word counts kept as their entries alone, several node types each by itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from legnn.nn.products import product
from legnn.ops import drop, project_entries
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.runtime.padding import pad_columns, padded_width

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
        return pad_columns(out, padded_width(out.size(1), out))


@dataclass(frozen=True, eq=False)
class TypedFeatures:
    """`X` `[n, T F]` of nodes of several types: that of `spread`, without its zeros."""

    parts: tuple[tuple[int, Tensor | SparseFeatures], ...]
    """Each type that has nodes, and their features `[n_t, F]`."""
    place: Tensor | None
    """`[n]` where each node stands among the nodes sorted by type; None where they are."""
    rows: Tensor
    """`[n, F]` in the order of the nodes."""
    node_type: Tensor
    num_types: int

    @classmethod
    def from_rows(cls, x: Tensor, node_type: Tensor, num_types: int, dtype: torch.dtype | None = None) -> TypedFeatures:
        """From features `[n, F]` and types `[n]`, each type sparse where that pays."""
        counts = torch.bincount(node_type, minlength=num_types).tolist()
        is_sorted = bool((node_type[1:] >= node_type[:-1]).all())
        order = None if is_sorted else node_type.argsort(stable=True)
        parts = (x if order is None else x[order]).split(counts)
        return cls(
            tuple((kind, compact(part, dtype)) for kind, part in enumerate(parts) if counts[kind]),
            None if order is None else order.argsort(),
            x,
            node_type,
            num_types,
        )

    @property
    def dense(self) -> Tensor:
        """The same as a plain tensor `[n, T F]`, for the few who need whole rows."""
        return spread(self.rows, self.node_type, self.num_types)

    def project(self, weight: Tensor, dropout: float, training: bool) -> Tensor:
        """`dropout(X) P` for `weight` `Pᵀ` `[D, T F]`; gives `[n, D]`."""
        channels = self.rows.size(1)
        projected = []
        for kind, part in self.parts:
            mine = weight[:, kind * channels : (kind + 1) * channels]
            if isinstance(part, SparseFeatures):
                projected.append(part.project(mine.contiguous(), dropout, training))
            else:
                projected.append(product(drop(part, dropout, training=training), mine))
        out = torch.cat(projected)
        return out if self.place is None else out.index_select(0, self.place)


Features = Tensor | SparseFeatures | TypedFeatures


def spread(x: Tensor, node_type: Tensor, num_types: int) -> Tensor:
    """Row `i` of `x` `[n, F]` in the columns of its type, `t F` to `(t + 1) F`, of `[n, T F]`.

    One matrix of `T F` rows is then a matrix of `F` rows for each type.
    """
    out = x.new_zeros(x.size(0), num_types, x.size(1))
    out[torch.arange(x.size(0), device=x.device), node_type] = x
    return out.flatten(1)


def compact(x: Tensor, dtype: torch.dtype | None = None) -> Tensor | SparseFeatures:
    """`x` `[M, F]` in the precision asked for, sparse where that pays."""
    few = x.numel() > 0 and float((x != 0).float().mean()) < SPARSE_BELOW
    return SparseFeatures.from_dense(x, dtype or x.dtype) if few else dense(x, dtype)


def dense(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """`x` `[M, F]` in the precision asked for, as wide as `padded_width` says."""
    x = x.to(dtype or x.dtype)
    return pad_columns(x, padded_width(x.size(1), x))
