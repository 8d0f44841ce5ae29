"""What data are known by: a digest that is equal only for the same graph."""

import hashlib

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
    digest = hashlib.blake2b(digest_size=16)
    # features that were computed may differ in the last bit from machine to machine: what they come from does not
    source = data.get("feature_digest")
    digest.update((source or "").encode())
    for key in FIELDS:
        value = None if key == "x" and source else data.get(key)
        if isinstance(value, Tensor):
            digest.update(f"{key} {list(value.shape)}".encode())
            digest.update(value.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
