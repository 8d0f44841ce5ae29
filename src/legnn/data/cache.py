"""Digests of strings and tensors, and by them a cache of what takes long to compute, in the user's cache folder."""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from legnn.files import atomic_write, cache_folder


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

    A cache that cannot be read or written, or was changed, is no error: the tensor is computed again.
    """
    key = digest_of(parts)
    name = f"embeddings/{key}.safetensors"
    # RuntimeError: the user has no home folder
    damage = (OSError, RuntimeError, SafetensorError, KeyError, ValueError, TypeError)
    with suppress(*damage), safe_open(cache_folder() / name, framework="pt") as file:
        tensor: Tensor = file.get_tensor("tensor")
        if (file.metadata() or {}).get("digest") == digest_of([key, tensor]):
            return tensor
    tensor = compute().contiguous()
    with suppress(OSError, RuntimeError), atomic_write(cache_folder() / name) as file:
        file.write(save({"tensor": tensor}, metadata={"digest": digest_of([key, tensor])}))
    return tensor
