"""Products of float32 matrices in bf16 on a CPU."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

WORTH_ROUNDING = 2 * 10**7
"""Multiplications of a product that takes time; smaller ones stay in float32."""


def products_are_bf16() -> bool:
    """Whether products of float32 matrices are in bf16 at the moment, which rounds their factors."""
    try:
        return torch.get_float32_matmul_precision() == "medium"
    except RuntimeError:
        # set by the names that PyTorch has since 2.9, which `training.matrix_products` does not use
        return False


@cache
def cpu_multiplies_bf16() -> bool:
    """Whether the processor multiplies in bf16, which takes half of the time of float32 or less."""
    return _has("_is_avx512_bf16_supported") or _has("_is_amx_tile_supported")


@cache
def _rounds_by_itself() -> bool:
    """Whether PyTorch computes products of float32 matrices in bf16 where it is asked to: with AMX alone."""
    return _has("_is_amx_tile_supported")


def _has(question: str) -> bool:
    # they have no public names
    ask = getattr(torch.cpu, question, None)
    return ask is not None and bool(ask())


def is_rounded(x: Tensor, columns: int) -> bool:
    """Whether the factors of a product of `x` `[n, in]` with `columns` columns are to be rounded to bf16 before it.

    The product is then rounded as well, as on a GPU: PyTorch has none of bf16 that gives float32 on a CPU.
    """
    return (
        not x.is_cuda
        and x.dtype == torch.float32
        and x.numel() * columns >= WORTH_ROUNDING
        and products_are_bf16()
        and cpu_multiplies_bf16()
        and not _rounds_by_itself()
    )
