"""Entries of the cache of computed features."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save

from legnn.data.cache import digest_of


def scale_entry(cache: Path, factor: float) -> torch.Tensor:
    """Multiplies the only entry by a factor, as if that had been computed, and returns it: who reads it, shows it."""
    (entry,) = cache.iterdir()
    tensor = load_file(entry)["tensor"] * factor
    entry.write_bytes(save({"tensor": tensor}, metadata={"digest": digest_of([entry.stem, tensor])}))
    return tensor
