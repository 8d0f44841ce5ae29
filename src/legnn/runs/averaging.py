"""Probabilities of several runs as those of one: their weighted mean, with a temperature."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def apply_temperature(probabilities: Tensor, temperature: float) -> Tensor:
    """`p_c^{1/T} / Σ_d p_d^{1/T}` in each row of `[n, C]`, which keeps the order of the classes; zeros stay zeros."""
    tiny = torch.finfo(probabilities.dtype).tiny
    # relative to the largest, whose power is 1: no row underflows
    powers = (probabilities / probabilities.amax(-1, keepdim=True).clamp(min=tiny)).pow(1 / temperature)
    return powers / powers.sum(-1, keepdim=True).clamp(min=tiny)


def average(probabilities: Iterable[Tensor], weights: Iterable[float], temperature: float) -> Tensor:
    """`apply_temperature(Σ_k w_k p_k, T)` in double precision, with one of the `p_k` `[n, C]` in memory at a time."""
    total: Tensor | None = None
    for p, weight in zip(probabilities, weights, strict=True):
        total = p.double() * weight if total is None else total.add_(p, alpha=weight)
    assert total is not None, "there is something to average"
    return apply_temperature(total, temperature)
