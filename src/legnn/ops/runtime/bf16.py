"""What a CPU does in bf16."""

from __future__ import annotations

from functools import cache

import torch


@cache
def cpu_multiplies_bf16() -> bool:
    """Whether the processor multiplies in bf16, which takes half of the time of float32 or less."""
    # they have no public names
    asked = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(ask is not None and ask() for ask in asked)
