"""Sums over the edges of every row, and what is added to them."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.cpu.arrays import NO_MATRIX, NOTHING, array, cuts_of, edge_arrays, label_arrays
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.runtime.jit import kernel
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import LabelMessage


@kernel
def _sum_rows(
    begin, end, rowptr, col, weight, x, source_scale, target_scale, label_of, label_rows, label_scale, add, out
):
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
                total[c] += share * x[j, c]
        end_row(i, total, target_scale, label_of, label_rows, label_scale, add, out)


@kernel
def end_row(i, total, target_scale, label_of, label_rows, label_scale, add, out):
    """Scale the sum of row `i`, add what comes from its label and what is to be added, and write it."""
    if target_scale.size:
        for c in range(total.size):
            total[c] *= target_scale[i]
    y = label_of[i] if label_of.size else -1
    if y >= 0:
        add_to(total, label_scale[i] if label_scale.size else np.float32(1), label_rows[y])
    if add.size:
        add_to(total, np.float32(1), add[i])
    for c in range(total.size):
        out[i, c] = total[c]


@kernel
def add_to(total, share, values):
    """`total += share · values`."""
    # by slices that begin at zero: only then does the compiler see that the loop can go by vectors
    for c in range(total.size):
        total[c] += share * values[c]


@kernel
def _add_label_rows(begin, end, x, shown, y, rows):
    for s in range(begin, end):
        add_to(x[shown[s]], np.float32(1), rows[y[s]])


def sum_rows(
    adjacency: Adjacency,
    x: Tensor,
    source_scale: Tensor | None = None,
    target_scale: Tensor | None = None,
    label: LabelMessage | None = None,
    add: Tensor | None = None,
) -> Tensor:
    """See `fused.Kernels`."""
    out = torch.empty(adjacency.num_rows, x.size(1))
    run_parallel(
        _sum_rows, adjacency.cuts, adjacency.num_edges * x.size(1), *edge_arrays(adjacency), array(x),
        array(source_scale), array(target_scale), *label_arrays(label), array(add, NO_MATRIX), out.numpy(),
    )  # fmt: skip
    return out.to(x.dtype)


def sum_edges(adjacency: Adjacency, x: Tensor, place: Tensor) -> Tensor:
    """See `fused.Kernels`."""
    out = torch.empty(adjacency.num_rows, x.size(1))
    run_parallel(
        _sum_rows, adjacency.cuts, x.numel(), adjacency.rowptr.numpy(), place.numpy(), NOTHING, array(x),
        NOTHING, NOTHING, *label_arrays(None), NO_MATRIX, out.numpy(),
    )  # fmt: skip
    return out


def add_label_rows(x: Tensor, shown: Tensor, y: Tensor, rows: Tensor) -> None:
    """See `fused.Kernels`."""
    wide = x.float()
    work = shown.numel() * x.size(1)
    run_parallel(_add_label_rows, cuts_of(shown.numel()), work, wide.numpy(), shown.numpy(), y.numpy(), array(rows))
    if wide is not x:
        x.copy_(wide)
