"""What happens along edges, and right after. Every layer calls these names; this is the one place that chooses a form.

| operation | equation |
|---|---|
| `propagate` | `t ∘ A (s ∘ x) + l ∘ Y labels + add` and `Yᵀ (c ∘ x)` |
| `attend` | the same with attention for weights, within each relation |
| `class_sum` | `Yᵀ x` of what needs no gradient |
| `label_gather`, `add_labels_` | the rows of `Y labels` that are not zero; `x + Y labels` |
| `project_entries` | `X P` for mostly-zero `X` |
| `finish` | `dropout(relu(norm(x)))` |
| `drop` | dropout of what needs no gradient |

Each has a plain form in `reference`. Single precision and bf16 take the form of `fused` over the kernels of the device,
`cpu` (numba) or `gpu` (Triton); other types, and a GPU without Triton, take the plain form.
"""

from __future__ import annotations

import warnings
from functools import lru_cache, partial
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from legnn.ops import fused, reference
from legnn.ops.kernels import Kernels
from legnn.ops.reference import Norm
from legnn.ops.types import Attended, AttentionConfig, Scales

if TYPE_CHECKING:
    from legnn.graph import Adjacency, LabelEdges, LabelGraph


__all__ = [
    "Attended",
    "AttentionConfig",
    "Scales",
    "add_labels_",
    "attend",
    "class_sum",
    "drop",
    "finish",
    "kernels_for",
    "label_gather",
    "project_entries",
    "propagate",
]


def kernels_for(x: Tensor) -> Kernels | None:
    """The kernels for the device and the type of `x`; None for the plain form."""
    if x.dtype not in (torch.float32, torch.bfloat16):
        return None
    if x.device.type == "cpu":
        # compiled on their first call: importing them takes a moment that not every command needs
        from legnn.ops import cpu

        return cast(Kernels, cpu)
    return _gpu() if x.device.type == "cuda" else None


@lru_cache(1)
def _gpu() -> Kernels | None:
    try:
        from legnn.ops import gpu
    except ImportError as error:
        warnings.warn(f"no Triton here ({error}): training on this GPU takes the slow, plain form", stacklevel=2)
        return None
    return cast(Kernels, gpu)


def propagate(
    graph: LabelGraph, x: Tensor, labels: Tensor | None, add: Tensor | None, scales: Scales, *, classes: bool
) -> tuple[Tensor, Tensor | None]:
    """`reference.propagate`."""
    kernels = kernels_for(x)
    form = reference.propagate if kernels is None else partial(fused.propagate, kernels)
    return form(graph, x, labels, add, scales, classes=classes)


def attend(
    graph: LabelGraph,
    sent: Tensor,
    labels: Tensor | None,
    label_target: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    kind: AttentionConfig,
    *,
    classes: bool,
) -> Attended:
    """`reference.attend`."""
    kernels = kernels_for(sent)
    form = reference.attend if kernels is None else partial(fused.attend, kernels)
    return form(graph, sent, labels, label_target, add, scales, kind, classes=classes)


def class_sum(edges: LabelEdges, x: Tensor) -> Tensor:
    """`reference.class_sum`, for `x` that needs no gradient."""
    kernels = kernels_for(x)
    if kernels is None:
        return reference.class_sum(edges, x)
    return kernels.sum_rows(edges.classes, x.contiguous())


def label_gather(graph: LabelGraph, labels: Tensor) -> Tensor:
    """`reference.label_gather`."""
    kernels = kernels_for(labels)
    return reference.label_gather(graph, labels) if kernels is None else fused.label_gather(kernels, graph, labels)


def add_labels_(edges: LabelEdges, x: Tensor, labels: Tensor) -> Tensor:
    """`reference.add_labels_`."""
    kernels = kernels_for(x)
    return reference.add_labels_(edges, x, labels) if kernels is None else fused.add_labels_(kernels, edges, x, labels)


def project_entries(rows: Adjacency, values: Tensor, weight: Tensor) -> Tensor:
    """`reference.project_entries`."""
    kernels = kernels_for(weight)
    if kernels is None:
        return reference.project_entries(rows, values, weight)
    return fused.project_entries(kernels, rows, values, weight)


def finish(x: Tensor, norm: Norm | None, dropout: float, *, training: bool) -> Tensor:
    """`reference.finish`, with dropout in training only."""
    seed = _seed(x) if training and dropout > 0 else None
    kernels = kernels_for(x)
    if kernels is None:
        return reference.finish(x, norm, dropout, seed)
    return fused.finish(kernels, x, norm, dropout, seed)


def drop(x: Tensor, dropout: float, *, training: bool) -> Tensor:
    """`reference.dropped`, in training only, for `x` `[n, D]` that needs no gradient."""
    if not training or dropout == 0:
        return x
    kernels = kernels_for(x)
    return reference.dropped(x, dropout, _seed(x)) if kernels is None else kernels.drop(x, dropout, _seed(x))


def _seed(x: Tensor) -> Tensor:
    """Two 32-bit words from PyTorch's generator, drawn where `x` lies so that nobody waits for them."""
    return torch.randint(2**32, (2,), device=x.device)
