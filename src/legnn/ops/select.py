"""The selector: which kernels an operation uses, by device and dtype.

| device, dtype | kernels |
|---|---|
| CPU, float32 or bfloat16 | numba |
| CUDA, float32 or bfloat16 | Triton |
| anything else, CUDA without Triton | None: plain PyTorch, `reference.py` of each operation |
"""

from __future__ import annotations

import importlib
import warnings
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from legnn.ops.kernels import AttentionKernels, GatherKernels, NormActDropoutKernels, PropagateKernels


class Kernels:
    """The kernels of one compiler. A module of kernels is imported on its first use: compilers load slowly."""

    def __init__(self, compiler: str) -> None:
        self.compiler = compiler

    def _module(self, operation: str) -> Any:
        name = f"legnn.ops.{operation}.{'cpu' if self.compiler == 'numba' else 'gpu'}"
        return importlib.import_module(name if find_spec(name) else f"legnn.ops.{operation}.{self.compiler}_kernels")

    @cached_property
    def propagate(self) -> PropagateKernels:
        """`legnn.ops.propagate`."""
        return self._module("propagate")

    @cached_property
    def attention(self) -> AttentionKernels:
        """`legnn.ops.attention`."""
        return self._module("attention")

    @cached_property
    def norm_act_dropout(self) -> NormActDropoutKernels:
        """`legnn.ops.norm_act_dropout`."""
        return self._module("norm_act_dropout")

    @cached_property
    def gather(self) -> GatherKernels:
        """`legnn.ops.gather`."""
        return self._module("gather")


NUMBA = Kernels("numba")
TRITON = Kernels("triton")


def kernels_for(x: Tensor) -> Kernels | None:
    """Returns the kernels for the device and dtype of `x`, or None for plain PyTorch."""
    return kernels_for_device(x.device) if x.dtype in (torch.float32, torch.bfloat16) else None


def kernels_for_device(device: torch.device) -> Kernels | None:
    """Returns the kernels for `device`, or None for plain PyTorch."""
    if device.type == "cpu":
        return NUMBA
    return TRITON if device.type == "cuda" and has_triton() else None


@lru_cache(1)
def has_triton() -> bool:
    """Whether Triton can be imported; warns once if it cannot."""
    try:
        importlib.import_module("triton.language")
    except ImportError as error:
        warnings.warn(f"Triton is missing ({error}): this GPU runs the slow reference operations", stacklevel=2)
        return False
    return True
