"""Digests of strings and tensors, and tensors that take long to compute, stored by digest in the user's cache."""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

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


def read_tensor(key: str) -> Tensor | None:
    """Returns the tensor that was written under `key`, a digest of its inputs; None if there is none.

    A cache that cannot be read, or was changed, is no error.
    """
    # RuntimeError: the user has no home folder
    damage = (OSError, RuntimeError, SafetensorError, KeyError, ValueError, TypeError)
    with suppress(*damage), safe_open(_file(key), framework="pt") as file:
        tensor: Tensor = file.get_tensor("tensor")
        if (file.metadata() or {}).get("digest") == digest_of([key, tensor]):
            return tensor
    return None


def write_tensor(key: str, tensor: Tensor) -> Tensor:
    """Writes `tensor` under `key`, if that is possible, and returns it."""
    tensor = tensor.contiguous()
    with suppress(OSError, RuntimeError), atomic_write(_file(key)) as file:
        file.write(save({"tensor": tensor}, metadata={"digest": digest_of([key, tensor])}))
    return tensor


def _file(key: str) -> Path:
    return cache_folder() / f"embeddings/{key}.safetensors"
