"""Compiles kernels before they are needed: those of the backward pass of attention, and what else it needs last.

    python -c "from legnn.ops.ahead import compile_kernels; compile_kernels()"

A process that trains compiles kernels when it first calls them, one after the other. Another one that runs this leaves
the last of them in the cache meanwhile, on a core that is idle.
"""

from __future__ import annotations

from numba import types

from legnn.ops.attention.numba_kernels import _attention_dot, _attention_gradient
from legnn.ops.norm_act_dropout.numba_kernels import _scale_act_dropout
from legnn.ops.propagate.numba_kernels import _sum_rows

_rows = types.int64, types.int64
_number, _word, _flag = types.float32, types.uint32, types.boolean
_nodes, _vector, _matrix = types.int32[::1], types.float32[::1], types.float32[:, ::1]
_label_terms = _nodes, _matrix, _vector, _matrix
_terms = _vector, _vector, *_label_terms

KERNELS = [
    (
        _attention_gradient,
        (
            *_rows, _nodes, _nodes, _nodes, _matrix, _matrix, types.int64, _matrix, _matrix, _number, _matrix, _matrix,
            _vector, _vector, _matrix, _matrix, _flag,
        ),
    ),
    (_attention_dot, (*_rows, _matrix, _matrix, types.int64, *_label_terms, _matrix)),
    (_scale_act_dropout, (*_rows, _matrix, _vector, _vector, _word, _word, _word, _number, _flag, _flag, _matrix)),
    (_sum_rows, (*_rows, _nodes, _nodes, _vector, _matrix, *_terms, _matrix)),
]  # fmt: skip
"""Kernels and the types that training calls them with. The forward pass of attention, which is needed first and takes
as long to compile, is left to the process that trains."""


def compile_kernels() -> None:
    """Compiles what is not in the cache."""
    for kernel, signature in KERNELS:
        kernel.compile(signature)  # type: ignore[attr-defined]
