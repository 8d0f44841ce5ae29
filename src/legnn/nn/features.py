"""Features without their zeros: sparse word counts, and a part for each of several node types."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from legnn.nn.layer import Linear, add_bias, linear
from legnn.nn.relations import NodesByType
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.norm_act_dropout import drop
from legnn.ops.propagate import project_entries

SPARSE_BELOW = 0.2
"""Features with a smaller fraction of nonzero entries are kept sparse: on CiteSeer (0.9 %) an epoch is then several
times faster, most of it saved in the dropout of zeros."""


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """`X` `[M, F]` in CSR."""

    rows: Adjacency
    """Columns are features, weights their values."""
    dense: Tensor
    """The same as a dense tensor."""
    dtype: torch.dtype = torch.float32
    """Precision of the projection."""

    @property
    def shape(self) -> torch.Size:
        """`[M, F]`."""
        return self.dense.shape

    @classmethod
    def from_dense(cls, x: Tensor, dtype: torch.dtype | None = None) -> SparseFeatures:
        """From `x` `[M, F]`."""
        node, feature = x.nonzero(as_tuple=True)
        rows = Adjacency.from_sorted(node, feature, x[node, feature], x.size(0), x.size(1))
        return cls(rows, x, dtype or x.dtype)

    def project(self, weight: Tensor, dropout: float, training: bool) -> Tensor:
        """`dropout(X) P` `[M, D]` for `weight` `Pᵀ` `[D, F]`."""
        values = self.rows.weight
        assert values is not None
        values = drop(values[None], dropout, training=training)[0]
        return project_entries(self.rows, values, weight).to(self.dtype)


@dataclass(frozen=True, eq=False)
class TypedFeatures:
    """`X` `[n, T F]` of nodes of several types: the output of `scatter_by_type`, without its zeros."""

    parts: tuple[tuple[int, Tensor | SparseFeatures], ...]
    """Each type that has nodes, and their features `[n_t, F]`."""
    nodes: NodesByType
    rows: Tensor
    """`[n, F]` in the order of the nodes."""
    node_type: Tensor

    @classmethod
    def from_rows(cls, x: Tensor, node_type: Tensor, num_types: int, dtype: torch.dtype | None = None) -> TypedFeatures:
        """From features `[n, F]` and types `[n]`, each type sparse where that is faster."""
        counts = torch.bincount(node_type, minlength=num_types).tolist()
        is_sorted = bool((node_type[1:] >= node_type[:-1]).all())
        nodes = NodesByType.group(node_type, counts, is_sorted=is_sorted)
        parts = [(kind, part) for kind, part in enumerate(nodes.split(x)) if counts[kind]]
        return cls(tuple((kind, to_sparse_if_faster(part, dtype)) for kind, part in parts), nodes, x, node_type)

    @property
    def shape(self) -> torch.Size:
        """`[n, T F]`."""
        return torch.Size((self.rows.size(0), len(self.nodes.counts) * self.rows.size(1)))

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the projection."""
        return self.parts[0][1].dtype if self.parts else self.rows.dtype

    @property
    def dense(self) -> Tensor:
        """The same as a dense tensor `[n, T F]`."""
        return scatter_by_type(self.rows, self.node_type, len(self.nodes.counts))

    def project(self, weight: Tensor, dropout: float, training: bool) -> Tensor:
        """`dropout(X) P` `[n, D]` for `weight` `Pᵀ` `[D, T F]`."""
        channels = self.rows.size(1)
        projected = []
        for kind, part in self.parts:
            of_type = weight[:, kind * channels : (kind + 1) * channels]
            if isinstance(part, SparseFeatures):
                projected.append(part.project(of_type.contiguous(), dropout, training))
            else:
                projected.append(linear(drop(part, dropout, training=training), of_type))
        return self.nodes.join(projected)


Features = Tensor | SparseFeatures | TypedFeatures


def project(x: Features, module: Linear, dropout: float, *, training: bool) -> Tensor:
    """`dropout(X) P + b` `[n, D]` for any form of `X`."""
    if isinstance(x, Tensor):
        return module(drop(x, dropout, training=training))
    return add_bias(x.project(module.weight, dropout, training), module.bias)


def scatter_by_type(x: Tensor, node_type: Tensor, num_types: int) -> Tensor:
    """`[n, T F]` with row `i` of `x` `[n, F]` in the columns `t F` to `(t + 1) F` of its type `t`.

    A projection of it has `F` rows of its own for each type.
    """
    out = x.new_zeros(x.size(0), num_types, x.size(1))
    out[torch.arange(x.size(0), device=x.device), node_type] = x
    return out.flatten(1)


def to_sparse_if_faster(x: Tensor, dtype: torch.dtype | None = None) -> Tensor | SparseFeatures:
    """`x` `[M, F]` in `dtype`, sparse where that is faster."""
    is_sparse = x.numel() > 0 and float((x != 0).float().mean()) < SPARSE_BELOW
    return SparseFeatures.from_dense(x, dtype) if is_sparse else x.to(dtype or x.dtype)
