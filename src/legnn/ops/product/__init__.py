"""Products of matrices with few rows, which labels have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

from legnn.ops import select
from legnn.ops.runtime.streams import run_beside

A = TypeVar("A")
B = TypeVar("B")

FEW_ROWS = 64
"""Up to so many rows a GPU computes the product in one launch of ours: PyTorch's takes up to four, for the copy of the
padded weight, the parts of the product and their sum."""


def takes_few_rows(x: Tensor) -> bool:
    """Whether products of `x` `[n, in]` should be computed by `multiply`."""
    return x.is_cuda and 0 < x.size(0) <= FEW_ROWS and select.kernels_for(x) is select.TRITON


def run_labels_beside(labels: Tensor | None, large: Callable[[], A], small: Callable[[], B]) -> tuple[A, B]:
    """Returns `large()`, of nodes, and `small()`, of `labels` `[C, D]`: at the same time if the labels are few."""
    if labels is None or not takes_few_rows(labels):
        # PyTorch's products would need a workspace for the side stream as well
        return large(), small()
    return run_beside(labels, large, small)


def multiply(a: Tensor, b: Tensor, like: Tensor, columns: int) -> Tensor:
    """`a b` `[m, columns]` in the precision and dtype of `like`, zero beyond the columns of `b`.

    Shapes: `a` `[m, k]` or wider with zeros, `b` `[k, n]`.
    """
    from legnn.ops.product.triton_kernels import multiply as launch

    return launch(a, b, like, columns)


def weight_gradient(a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """`aᵀ b` in the shape `[m, n]` and dtype of `like`, a sum over few rows.

    Shapes: `a` `[k, m]` or wider, `b` `[k, n]` or wider.
    """
    from legnn.ops.product.triton_kernels import weight_gradient as launch

    return launch(a, b, like)
