"""Compiles kernels before they are needed: those that the first training step needs last.

    python -c "from legnn.ops.ahead import compile_kernels; compile_kernels()"

A process that trains compiles kernels when it first calls them, one after the other. Another one that runs this leaves
the last of them in the cache meanwhile, on a core that is idle. It has no more of them than are ready in time: a kernel
that both processes compile takes a core from the training.
"""

from __future__ import annotations

from numba import types

from legnn.ops.attention.cpu import _score_gradient, _sum_edges
from legnn.ops.propagate.cpu import _sum_rows
from legnn.ops.runtime.bf16 import cpu_multiplies_bf16

_rows = types.int64, types.int64
_number = types.float32
_nodes, _vector, _matrix = types.int32[::1], types.float32[::1], types.float32[:, ::1]
_states = types.uint16[:, ::1] if cpu_multiplies_bf16() else _matrix
"""A matrix in the precision of the default settings: the bits of bf16, or float32."""
_heads = types.UniTuple(types.int64, 4)
"""As many as attention has in the default settings."""
_terms = _vector, _vector, _nodes, _states, _vector, _states

KERNELS = [
    (_sum_rows, (*_rows, _nodes, _nodes, _vector, _states, *_terms, _states)),
    (_sum_edges, (*_rows, _heads, _nodes, _nodes, _vector, _vector)),
    (_score_gradient, (*_rows, _heads, _nodes, _nodes, *3 * [_vector], _number, *5 * [_vector])),
]
"""Kernels and the types that training calls them with, the one that it needs last first."""


def compile_kernels() -> None:
    """Compiles what is not in the cache."""
    for kernel, signature in KERNELS:
        kernel.compile(signature)  # type: ignore[attr-defined]
