"""Layer norm, activation and dropout on a CPU, in numba: one pass over a matrix forward, and one back.

PyTorch's layer norm is a good kernel, but what follows it, and its gradient, are passes of their own over a matrix that
has left the cache.

Loops that sum up numbers write nothing: a loop that does both is compiled twice, and which one runs, with sums in
another order, depends on where in memory the arrays are.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from legnn.ops.norm_act_dropout.cpu import write_dropped
from legnn.ops.norm_act_dropout.reference import drop_threshold
from legnn.ops.runtime.arrays import ROWS_PER_PART, as_array, as_matrix, as_output, empty_padded, row_cuts
from legnn.ops.runtime.fork_join import fork_join
from legnn.ops.runtime.jit import kernel, narrow, widen
from legnn.ops.runtime.threads import run_parallel


@kernel
def _layer_norm_act_dropout(
    begin, end, x, weight, bias, epsilon, low, high, least, factor, drops, mean_and_inverse, out
):
    if fork_join(begin, end):
        return
    columns = weight.size
    line = np.empty(columns, np.float32)
    for i in range(begin, end):
        for c in range(columns):
            line[c] = widen(x[i, c])
        total = np.float32(0)
        for c in range(columns):
            total += line[c]
        mean = total / np.float32(columns)
        for c in range(columns):
            line[c] -= mean
        squares = np.float32(0)
        for c in range(columns):
            squares += line[c] * line[c]
        inverse = np.float32(1) / np.sqrt(squares / np.float32(columns) + epsilon)
        mean_and_inverse[i, 0], mean_and_inverse[i, 1] = mean, inverse
        for c in range(columns):
            value = line[c] * inverse * weight[c] + bias[c]
            # NaN stays NaN
            line[c] = np.float32(0) if value <= 0 else value
        write_dropped(i, line, low, high, least, factor, drops, out)


@kernel
def _layer_norm_gradient(begin, end, gradient, out, x, weight, mean_and_inverse, factor, into, partial, rows):
    if fork_join(begin, end):
        return
    columns = weight.size
    up = np.empty(columns, np.float32)
    value = np.empty(columns, np.float32)
    for part in range(begin, end):
        sums, products = partial[part, 0], partial[part, 1]
        sums[:] = 0
        products[:] = 0
        for i in range(part * rows, min((part + 1) * rows, x.shape[0])):
            mean, inverse = mean_and_inverse[i, 0], mean_and_inverse[i, 1]
            for c in range(columns):
                value[c] = (widen(x[i, c]) - mean) * inverse
                up[c] = widen(gradient[i, c]) * factor if widen(out[i, c]) > 0 else np.float32(0)
            for c in range(columns):
                sums[c] += up[c]
                products[c] += up[c] * value[c]
                up[c] *= weight[c]
            total = product = np.float32(0)
            for c in range(columns):
                total += up[c]
                product += up[c] * value[c]
            total /= np.float32(columns)
            product /= np.float32(columns)
            for c in range(columns):
                into[i, c] = narrow(inverse * (up[c] - total - value[c] * product), into)


class LayerNormActDropout(torch.autograd.Function):
    """`dropout(relu(layer_norm(x)))`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, norm: nn.LayerNorm, dropout: float, seed: Tensor | None
    ) -> Tensor:
        """Returns `[n, D]`; `weight` and `bias` are those of `norm`."""
        out = empty_padded(x.size(0), x.size(1), weight.numel(), x.dtype)
        mean_and_inverse = torch.empty(x.size(0), 2)
        low, high = (0, 0) if seed is None else seed.tolist()
        factor = 1.0 if seed is None else 1 / (1 - dropout)
        run_parallel(
            _layer_norm_act_dropout, row_cuts(x.size(0)), x.numel(), as_matrix(x, x.dtype), as_array(weight),
            as_array(bias), np.float32(norm.eps), np.uint32(low), np.uint32(high), np.uint32(drop_threshold(dropout)),
            np.float32(factor), seed is not None, mean_and_inverse.numpy(), as_output(out),
        )  # fmt: skip
        # entries that were dropped or negative are zero in the output: it is the mask of the gradient
        ctx.save_for_backward(x, weight, mean_and_inverse, out)
        ctx.factor = factor
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradients of `x`, `weight` and `bias`."""
        x, weight, mean_and_inverse, out = ctx.saved_tensors
        parts, columns = -(-x.size(0) // ROWS_PER_PART), weight.numel()
        into = empty_padded(x.size(0), x.size(1), columns, x.dtype)
        partial = torch.empty(parts, 2, columns)
        run_parallel(
            _layer_norm_gradient, range(parts + 1), x.numel(),
            *(as_matrix(one, x.dtype) for one in (gradients[0], out, x)), as_array(weight), mean_and_inverse.numpy(),
            np.float32(ctx.factor), as_output(into), partial.numpy(), ROWS_PER_PART,
        )  # fmt: skip
        d_bias, d_weight = partial.sum(0)
        return into, d_weight, d_bias, None, None, None
