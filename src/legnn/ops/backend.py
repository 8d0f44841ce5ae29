"""The one registry: which implementation of an operation runs, by device and dtype.

| device and dtype | module of the operation's package |
|---|---|
| CPU, float32 or bfloat16 | `cpu`: numba |
| CUDA, float32 or bfloat16 | `gpu`: Triton |
| anything else, such as float64; CUDA without Triton; an operation that has no such module | `reference`: PyTorch |

The environment variable `LEGNN_BACKEND=reference` selects plain PyTorch for everything, to debug a gradient. With
`TRITON_INTERPRET=1` and `LEGNN_BACKEND=gpu`, tests run Triton's kernels on a CPU.
"""

from __future__ import annotations

import importlib
import os
import warnings
from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from legnn.errors import InputError

VARIABLE = "LEGNN_BACKEND"
KERNELS = {"cpu": "cpu", "cuda": "gpu"}
"""The module with kernels for a device."""


def backend(operation: str, like: Tensor | torch.device) -> ModuleType:
    """Returns the module of `legnn.ops.<operation>` that computes on the device of `like`, in its dtype if a tensor."""
    return _module(operation, _implementation(like))


def autocast(device: torch.device, *, enabled: bool) -> torch.autocast:
    """A context on `device` in which products of matrices are in bf16, or in the precision of the inputs."""
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


def _implementation(like: Tensor | torch.device) -> str:
    if isinstance(like, Tensor):
        if like.dtype not in (torch.float32, torch.bfloat16):
            return "reference"
        like = like.device
    forced = os.environ.get(VARIABLE)
    if forced:
        if forced not in ("reference", *KERNELS.values()):
            raise InputError(f"{VARIABLE} is {forced!r}; set it to `reference` for plain PyTorch, or unset it")
        return forced
    module = KERNELS.get(like.type, "reference")
    return "reference" if module == "gpu" and not _has_triton() else module


@lru_cache(None)
def _module(operation: str, implementation: str) -> ModuleType:
    name = f"legnn.ops.{operation}"
    # compilers load slowly: a module of kernels is imported on its first use
    return importlib.import_module(f"{name}.{implementation if find_spec(f'{name}.{implementation}') else 'reference'}")


@lru_cache(1)
def _has_triton() -> bool:
    """Whether Triton can be imported; warns once if it cannot."""
    if find_spec("triton") is not None:
        return True
    warnings.warn("Triton is missing: this GPU runs the slow reference operations", stacklevel=2)
    return False
