"""Sums over the edges of each row on a CPU, in numba.

PyTorch's own sparse product is as fast, but does nothing else; these kernels scale and add the label messages in the
same pass. Matrices are in float32 or bf16, sums in float32.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.runtime.arrays import as_array, as_matrix, as_output, row_cuts
from legnn.ops.runtime.fork_join import fork_join
from legnn.ops.runtime.jit import inlined, kernel, narrow, widen
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import RowTerms

NO_CLASSES = np.empty(0, np.int32)
FEW_NUMBERS = 60_000
"""Fewer numbers than this PyTorch adds to rows, in 40 µs at most, where compiling the kernel takes 0.2 s."""


def edge_arrays(adjacency: Adjacency) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`rowptr`, `col` and `weight`."""
    return adjacency.rowptr.numpy(), adjacency.col.numpy(), as_array(adjacency.weight)


def term_arrays(terms: RowTerms, dtype: torch.dtype) -> tuple[np.ndarray, ...]:
    """The fields of `terms`, matrices in `dtype`; empty arrays for None."""
    label_of = NO_CLASSES if terms.label_of is None else terms.label_of.numpy()
    label = label_of, as_matrix(terms.label_rows, dtype), as_array(terms.label_scale)
    return as_array(terms.source_scale), as_array(terms.target_scale), *label, as_matrix(terms.add, dtype)


@kernel
def _sum_rows(
    begin, end, rowptr, col, weight, x, source_scale, target_scale, label_of, label_rows, label_scale, add, out
):
    if fork_join(begin, end):
        return
    columns = x.shape[1]
    total = np.empty(columns, np.float32)
    for i in range(begin, end):
        total[:] = 0
        for k in range(rowptr[i], rowptr[i + 1]):
            j = col[k]
            share = np.float32(1)
            if weight.size:
                share *= weight[k]
            if source_scale.size:
                share *= source_scale[j]
            for c in range(columns):
                total[c] += share * widen(x[j, c])
        write_row(i, total, target_scale, label_of, label_rows, label_scale, add, out)


@inlined
def write_row(i, total, target_scale, label_of, label_rows, label_scale, add, out):
    """Scales `total`, adds the label message and `add` of row `i`, and writes it to `out`."""
    if target_scale.size:
        for c in range(total.size):
            total[c] *= target_scale[i]
    y = label_of[i] if label_of.size else -1
    if y >= 0:
        add_scaled(total, label_scale[i] if label_scale.size else np.float32(1), label_rows[y])
    if add.size:
        add_scaled(total, np.float32(1), add[i])
    for c in range(total.size):
        out[i, c] = narrow(total[c], out)


@inlined
def add_scaled(total, share, values):
    """`total += share · values`, of `total` in float32."""
    # callers pass slices, whose indices begin at zero: only then does the compiler vectorize the loop
    for c in range(total.size):
        total[c] += share * widen(values[c])


@kernel
def _add_label_rows(begin, end, x, shown, y, rows):
    if fork_join(begin, end):
        return
    for s in range(begin, end):
        into, row = x[shown[s]], rows[y[s]]
        for c in range(row.size):
            into[c] = narrow(widen(into[c]) + widen(row[c]), x)


def sum_rows(adjacency: Adjacency, x: Tensor, terms: RowTerms = RowTerms()) -> Tensor:
    """See `PropagateKernels`."""
    out = torch.empty(adjacency.num_rows, x.size(1), dtype=x.dtype)
    run_parallel(
        _sum_rows, adjacency.row_partition, adjacency.num_edges * x.size(1), *edge_arrays(adjacency),
        as_matrix(x, x.dtype), *term_arrays(terms, x.dtype), as_output(out),
    )  # fmt: skip
    return out


def add_label_rows(x: Tensor, shown: Tensor, y: Tensor, rows: Tensor) -> None:
    """See `PropagateKernels`."""
    work = shown.numel() * x.size(1)
    if work < FEW_NUMBERS:
        columns = x[:, : rows.size(1)]
        columns[shown] = columns[shown] + rows[y].to(x.dtype)
        return
    run_parallel(
        _add_label_rows, row_cuts(shown.numel()), work, as_output(x), shown.numpy(), y.numpy(),
        as_matrix(rows, x.dtype),
    )  # fmt: skip
