"""What data are known by: a digest that is equal only for the same graph."""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import Data

FIELDS = (
    *("x", "y", "edge_index", "edge_weight"),
    *("train_mask", "val_mask", "test_mask"),
    *("label_x", "label_adjacency"),
    *("node_type", "target_mask"),
)


def fingerprint(data: Data) -> str:
    """The digest of features, labels, edges and splits of a graph that `load` returned.

    A prepared folder keeps that of the graph it was made from: nobody reads it all again to know what it is.
    """
    stored = data.get("fingerprint")
    if isinstance(stored, str):
        return stored
    # features that were computed may differ in the last bit from machine to machine: what they come from does not
    source = data.get("feature_digest") or ""
    parts: list[str | Tensor] = [source]
    for key in FIELDS:
        value = None if key == "x" and source else data.get(key)
        if isinstance(value, Tensor):
            parts += [key, value]
    return digest_of(parts)


def digest_of(parts: Iterable[str | Tensor]) -> str:
    """A hash of words and tensors: equal only for the same ones in the same order."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, str):
            digest.update(f"{len(part)} {part}".encode())
        else:
            digest.update(f"{part.dtype} {list(part.shape)}".encode())
            digest.update(part.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
