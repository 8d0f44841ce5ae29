"""Rows of edges on a CPU, by sorting."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from legnn.ops.csr.build import coo_to_csr
from legnn.ops.csr.reference import Rows


def sort_edges(row: Tensor, col: Tensor, weight: Tensor | None, num_nodes: int) -> Rows:
    """See `reference.sort_edges`."""
    values = None if weight is None else weight.numpy()
    csr = coo_to_csr(row.numpy(), col.numpy(), values, num_nodes, num_nodes)
    rowptr, sorted_col = torch.from_numpy(csr.rowptr), torch.from_numpy(csr.col)
    return rowptr, sorted_col, None if csr.weight is None else torch.from_numpy(csr.weight)


def transpose(rowptr: Tensor, col: Tensor, num_cols: int) -> tuple[Tensor, Tensor, Tensor]:
    """See `reference.transpose`."""
    edges, num_rows = col.numel(), rowptr.numel() - 1
    # the values are the positions of the edges; padding edges are in one more row and column
    position = np.arange(edges, dtype=np.int32 if edges < 2**31 else np.int64)
    ends = np.append(rowptr.numpy(), edges).astype(rowptr.numpy().dtype)
    transposed = csr_array((position, col.numpy(), ends), shape=(num_rows + 1, num_cols + 1)).tocsc()
    new_rowptr, new_col = (torch.from_numpy(each) for each in (transposed.indptr[: num_cols + 1], transposed.indices))
    return new_rowptr, new_col, torch.from_numpy(transposed.data)
