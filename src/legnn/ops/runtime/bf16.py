"""Whether a CPU multiplies in bf16."""

from __future__ import annotations

from functools import cache

from llvmlite.binding import get_host_cpu_features


@cache
def cpu_multiplies_bf16() -> bool:
    """Whether the processor multiplies in bf16, which takes half of the time of float32 or less."""
    features = get_host_cpu_features()
    return any(features.get(name, False) for name in ("avx512bf16", "amx-bf16"))
