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
from legnn.ops.runtime.arrays import NO_MATRIX, as_array, as_matrix, as_output
from legnn.ops.runtime.jit import kernel, narrow, widen
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import RowTerms

NO_CLASSES = np.empty(0, np.int32)


def edge_arrays(adjacency: Adjacency) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`rowptr`, `col` and `weight`."""
    return adjacency.rowptr.numpy(), adjacency.col.numpy(), as_array(adjacency.weight)


def term_arrays(terms: RowTerms, dtype: torch.dtype) -> tuple[np.ndarray, ...]:
    """The fields of `terms`, matrices in `dtype`; empty arrays for None."""
    label_of = NO_CLASSES if terms.label_of is None else terms.label_of.numpy()
    label = label_of, as_matrix(terms.label_rows, dtype), as_array(terms.label_scale)
    return as_array(terms.source_scale), as_array(terms.target_scale), *label, as_matrix(terms.add, dtype)


# Arrays are indexed, not cut into rows: to count the references to a row takes numba as long as a short sum.
# Indices have no sign: a negative one counts from the end, and the compiler vectorizes a loop only if it knows of none.
@kernel
def _sum_rows(
    begin, end, heads, channels, rowptr, col, weight, x,
    source_scale, target_scale, label_of, label_rows, label_scale, add, out,
):  # fmt: skip
    columns, width = np.uint64(channels), np.uint64(channels // heads)
    total = np.empty(columns, np.float32)
    for i in range(np.uint64(begin), np.uint64(end)):
        for c in range(columns):
            total[c] = 0
        for edge in range(rowptr[i], rowptr[i + np.uint64(1)], 2):
            # two edges at once: each alone would load and store all of `total`
            first, is_pair = np.uint64(edge), edge + 1 < rowptr[i + np.uint64(1)]
            second = np.uint64(edge + 1) if is_pair else first
            a, b = np.uint64(col[first]), np.uint64(col[second])
            sends_a = source_scale[a] if source_scale.size else np.float32(1)
            sends_b = source_scale[b] if source_scale.size else np.float32(1)
            sends_b = sends_b if is_pair else np.float32(0)
            for h in range(np.uint64(heads)):
                share_a, share_b = sends_a, sends_b
                if weight.size:
                    share_a, share_b = share_a * weight[first, h], share_b * weight[second, h]
                for c in range(h * width, h * width + width):
                    total[c] += share_a * widen(x[a, c]) + share_b * widen(x[b, c])
        if target_scale.size:
            for c in range(columns):
                total[c] *= target_scale[i]
        if label_of.size and label_of[i] >= 0:
            y, share = np.uint64(label_of[i]), label_scale[i] if label_scale.size else np.float32(1)
            for c in range(columns):
                total[c] += share * widen(label_rows[y, c])
        if add.size:
            for c in range(columns):
                total[c] += widen(add[i, c])
        for c in range(columns):
            out[i, c] = narrow(total[c], out)


def sum_rows(adjacency: Adjacency, x: Tensor, terms: RowTerms = RowTerms()) -> Tensor:
    """Returns `A x` `[rows, D]` for `x` `[cols, D]`, scaled and added to as `terms` say."""
    out = torch.empty(adjacency.num_rows, x.size(1), dtype=x.dtype)
    weight = None if adjacency.weight is None else adjacency.weight[:, None]
    sum_heads(adjacency, weight, 1, x, x.size(1), terms, out)
    return out


def sum_heads(
    adjacency: Adjacency, weight: Tensor | None, heads: int, x: Tensor, channels: int, terms: RowTerms, out: Tensor
) -> None:
    """Sums the first `channels` columns of `x` over the edges of each row into those of `out`.

    `weight` `[edges, heads]` is the factor of each edge, or None; of a head, the columns are side by side.
    """
    run_parallel(
        _sum_rows, adjacency.row_partition, adjacency.num_edges * channels, heads, channels, adjacency.rowptr.numpy(),
        adjacency.col.numpy(), as_array(weight, NO_MATRIX), as_matrix(x, x.dtype),
        *term_arrays(terms, x.dtype), as_output(out),
    )  # fmt: skip
