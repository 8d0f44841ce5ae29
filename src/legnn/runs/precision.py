"""The precision in which a run computes.

| precision | features and activations | products of matrices |
|---|---|---|
| `fp32` | float32 | float32 |
| `tf32` | float32 | TF32 on a GPU: 10 bits of mantissa in, float32 sums |
| `bf16` | bfloat16 | bfloat16: 7 bits of mantissa in, float32 sums |
| `fp64` | float64 | float64, in plain PyTorch without kernels: to debug a gradient |
| `auto` | float32 | TF32 on a GPU, float32 on the CPU |

On a GPU with bf16, and for wide models on a CPU with instructions for it, `auto` becomes `bf16` before a run starts,
where that was compared (`runs.resources`); its row is what it means elsewhere, and in a run that was started with it.

Weights, their gradients and the loss are float32 everywhere, and so are sums along edges and statistics before they are
rounded; with `fp64` all but the weights is float64. On a CPU without instructions for bf16, which would take longer
than float32 there, `bf16` is `fp32`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import torch


class Precision(NamedTuple):
    """Meaning of the setting `precision` on a device; `runs.device` chooses it."""

    dtype: torch.dtype
    """Of the features and activations."""
    products: Literal["highest", "high", "medium"]
    """Of products of float32 matrices, in PyTorch's words: float32, TF32 or bf16."""


@contextmanager
def training_modes() -> Iterator[None]:
    """Context of a run, in which gradients are computed and new tensors are float32, whatever the caller has set."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad(), _no_autocast("cpu"), _no_autocast("cuda"):
            yield
    finally:
        torch.set_default_dtype(default)


def _no_autocast(device: str) -> torch.autocast:
    return torch.autocast(device, enabled=False)


@contextmanager
def matrix_products(precision: str) -> Iterator[None]:
    """Context in which products of float32 matrices have `precision`; restores the caller's choice."""
    restores = _restores()
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = precision != "highest"
    try:
        yield
    finally:
        for restore in restores:
            restore()


Restore = Callable[[], Any]


def _restores() -> list[Restore]:
    """Functions that set what is set now."""
    try:
        restores: list[Restore] = [partial(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())]
    except RuntimeError:
        # what a caller set through the names that PyTorch has since 2.9 cannot be read through the older ones
        restores = [_restore("cuda.matmul"), _restore("mkldnn.matmul")]
    try:
        restores.append(partial(setattr, torch.backends.cudnn, "allow_tf32", torch.backends.cudnn.allow_tf32))
    except RuntimeError:
        restores += [_restore("cudnn.conv"), _restore("cudnn.rnn")]
    return restores


def _restore(name: str) -> Restore:
    # by name: PyTorch's type hints do not know all of them
    backend = attrgetter(name)(torch.backends)
    return partial(setattr, backend, "fp32_precision", backend.fp32_precision)
