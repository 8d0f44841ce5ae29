"""Checks of the tensors that users pass: wrong ones would be read past their ends by compiled code."""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Tensor

from legnn.errors import InputError


def check_index(name: str, index: object, size: int, *, distinct: bool = False, mask: bool = False) -> Tensor:
    """Returns `index` as int64 `[n]`: numbers below `size`, each once if `distinct`; a new tensor if it is converted.

    With `mask`, a boolean mask `[size]` stands for the positions where it is true.
    """
    index = check_tensor(name, index)
    if mask and index.dtype == torch.bool and index.shape == (size,):
        return index.nonzero().flatten()
    if index.dtype == torch.bool or index.is_floating_point() or index.is_complex():
        either = f"or a boolean mask of length {size}" if mask else "such as torch.long"
        raise InputError(f"`{name}` must be a tensor of integers {either}, not {_describe(index)}")
    if index.dim() != 1:
        raise InputError(f"`{name}` must have one dimension, not the shape {tuple(index.shape)}")
    index = index.long()
    check_range(name, index, size)
    seen = torch.zeros(size if distinct else 0, dtype=torch.bool, device=index.device)
    if distinct and int(seen.index_fill(0, index, True).sum()) < index.numel():
        raise InputError(f"`{name}` must have every number once, and has one of them several times")
    return index


def check_range(name: str, index: Tensor, size: int) -> None:
    """Raises `InputError` unless all of `index`, of any shape, are from 0 to `size - 1`."""
    if index.numel():
        low, high = (int(end) for end in index.aminmax())
        if low < 0 or high >= size:
            raise InputError(f"`{name}` must be from 0 to {size - 1}, and has {low if low < 0 else high}")


def check_weight(name: str, weight: object, shape: tuple[int, ...], *, zeros: bool = False) -> Tensor:
    """Returns `weight` of the given shape in float32 or float64: finite, and positive, or not negative with `zeros`."""
    weight = check_tensor(name, weight)
    if weight.dtype == torch.bool or weight.is_complex():
        raise InputError(f"`{name}` must be a tensor of floats, not {_describe(weight)}")
    if weight.requires_grad:
        raise InputError(f"`{name}` must not require a gradient; pass `{name}.detach()`")
    if weight.shape != shape:
        raise InputError(f"`{name}` must have the shape {shape}, not {tuple(weight.shape)}")
    weight = weight if weight.dtype == torch.float64 else weight.float()
    if not bool((weight.isfinite() & ((weight >= 0) if zeros else (weight > 0))).all()):
        raise InputError(f"`{name}` must be finite and {'not negative' if zeros else 'positive'} everywhere")
    return weight


def check_count(name: str, number: object, least: int = 0) -> int:
    """Returns `number`, an integer of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise InputError(f"`{name}` must be an integer of at least {least}, not {number!r}")
    return int(number)


def check_tensor(name: str, value: object) -> Tensor:
    """Returns `value`, a dense tensor."""
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        raise InputError(f"`{name}` must be a dense tensor, not {_describe(value)}")
    return value


def _describe(value: object) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"a tensor of {value.dtype}" if value.layout == torch.strided else "a sparse tensor"
