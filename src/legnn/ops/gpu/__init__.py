"""The kernels of a GPU, in Triton.

One program sums one row, or a piece of a long one, for one block of columns. Blocks of columns are the slow axis of the
grid: while one block is summed over all rows, the part of `x` that is gathered from is a slice narrow enough to stay in
the cache for the most part. Sums run in the order of the rows' edges, with no atomics: the same input gives the same
bits.
"""

from legnn.ops.gpu.attention import attention_dot, attention_gradient, attention_sum, log_denominator
from legnn.ops.gpu.finish import activate, activate_gradient, batch_norm, batch_norm_gradient, drop
from legnn.ops.gpu.sums import add_label_rows, sum_edges, sum_rows

__all__ = [
    "activate",
    "activate_gradient",
    "add_label_rows",
    "attention_dot",
    "attention_gradient",
    "attention_sum",
    "batch_norm",
    "batch_norm_gradient",
    "drop",
    "log_denominator",
    "sum_edges",
    "sum_rows",
]
