"""A digest of strings and tensors that does not depend on the machine."""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor


def digest_of(parts: Iterable[str | Tensor]) -> str:
    """Returns a hash of `parts`; equal only for equal strings and tensors in the same order."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, str):
            digest.update(f"{len(part)} {part}".encode())
        else:
            digest.update(f"{part.dtype} {list(part.shape)}".encode())
            digest.update(part.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
