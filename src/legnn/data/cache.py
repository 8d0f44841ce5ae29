"""Digests of strings and tensors, and by them a cache of what takes long to compute, in the user's cache folder."""

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from legnn.files import atomic_write


def digest_of(parts: Iterable[str | Tensor]) -> str:
    """Returns a hash of `parts`, on any machine; equal only for equal strings and tensors in the same order."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, str):
            digest.update(f"{len(part)} {part}".encode())
        else:
            digest.update(f"{part.dtype} {list(part.shape)}".encode())
            digest.update(part.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def cached(parts: Iterable[str | Tensor], compute: Callable[[], Tensor]) -> Tensor:
    """Returns `compute()`, from the cache if it was computed before from the same `parts`.

    A cache that cannot be read or written is no error: the tensor is computed again.
    """
    name = f"embeddings/{digest_of(parts)}.safetensors"
    try:
        return load_file(cache_folder() / name)["tensor"]
    except (OSError, RuntimeError, SafetensorError, KeyError):  # RuntimeError: the user has no home folder
        tensor = compute().contiguous()
    with suppress(OSError, RuntimeError), atomic_write(cache_folder() / name) as file:
        file.write(save({"tensor": tensor}))
    return tensor


def cache_folder() -> Path:
    """Returns the folder `legnn` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "legnn"
