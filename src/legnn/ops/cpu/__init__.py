"""The kernels of a CPU, in numba.

PyTorch's own sparse product is as fast as the sum over neighbors here, but does nothing else; these do the scaling, the
attention and the labels in the same pass. Its dropout is slow (one thread draws every number): a hash of the place is
many times faster. bf16 is widened to single precision on the way in and narrowed on the way out.
"""

from legnn.ops.cpu.attention import attention_dot, attention_gradient, attention_sum, log_denominator
from legnn.ops.cpu.finish import activate, activate_gradient, batch_norm, batch_norm_gradient, drop
from legnn.ops.cpu.sums import add_label_rows, sum_edges, sum_rows

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
