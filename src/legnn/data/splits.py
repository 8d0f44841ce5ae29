"""Splits: the part of each node, as one vector; one of several, or one drawn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from legnn.errors import InputError

NO_SPLIT, TRAIN, VAL, TEST = range(4)
"""Values of the vector."""
SPLITS = ("train", "val", "test")
SPLIT_NAMES = ("", *SPLITS)
"""Names of the values."""
MASKS = tuple(f"{name}_mask" for name in SPLITS)
"""Fields of a PyG `Data` that hold a split."""
SPLIT_WORDS = {"train": TRAIN, "val": VAL, "valid": VAL, "validation": VAL, "test": TEST}
"""Values by the words that tables and arrays may have."""

TRAIN_SHARE, VAL_SHARE = 0.6, 0.2


def split_number(split: int | str | None) -> int | None:
    """Returns the number of a split, or None for the default one."""
    return split if isinstance(split, int) else None


def to_masks(split: Tensor) -> dict[str, Tensor]:
    """Returns the masks by which PyG has a split, bool `[M]`."""
    return {mask: split == value for value, mask in enumerate(MASKS, 1)}


def from_masks(masks: Mapping[str, Any]) -> Tensor:
    """Returns the split of three masks bool `[M]` or `[M, K]` by their names in PyG; a mask `[M]` is of all K splits.

    Raises `ValueError` with the row and the two splits of the first node that is in two.
    """
    columns = [mask.bool().unsqueeze(1) if mask.dim() == 1 else mask.bool() for mask in (masks[name] for name in MASKS)]
    width = min((mask.size(1) for mask in columns if mask.size(1) > 1), default=1)
    columns = [mask[:, :width].expand(-1, width) for mask in columns]
    shared = sum(mask.int() for mask in columns) > 1
    if shared.any():
        node, column = map(int, shared.nonzero()[0])
        raise ValueError(node, [value for value, mask in enumerate(columns, 1) if mask[node, column]])
    split = sum(value * mask.to(torch.int8) for value, mask in enumerate(columns, 1))
    return split.squeeze(1) if all(masks[name].dim() == 1 for name in MASKS) else split


def pick_split(splits: Tensor, number: int | None, name: str) -> Tensor:
    """Returns the column `number` of splits [M, K], the first one for None; a vector [M] is one split."""
    column = 0 if number is None else number
    splits = splits.unsqueeze(1) if splits.dim() == 1 else splits
    count = splits.size(1)
    if column >= count:
        choice = "0" if count == 1 else f"0 to {count - 1}"
        raise InputError(f"split {column} of {name} does not exist; choose {choice}, or leave split out")
    return splits[:, column].contiguous()


def split_words(split: Tensor) -> np.ndarray:
    """Returns the name of the split of each node, text `[n]`; empty for a node in none."""
    return np.array(SPLIT_NAMES, dtype=object)[split.numpy()]


def stratified_split(y: Tensor, seed: int) -> Tensor:
    """Draws 60/20/20 of the labeled nodes of every class, at least one of them for training.

    A class of two or more nodes also has one for validation. Unlabeled nodes (-1) are in no split.
    """
    size = np.bincount(y[y >= 0].numpy(), minlength=1)
    train = np.maximum(1, np.rint(TRAIN_SHARE * size).astype(np.int64))
    val = np.maximum(1, np.rint(VAL_SHARE * size).astype(np.int64))
    return draw_split(y, train, val, seed)


def draw_split(y: Tensor, train: np.ndarray, val: np.ndarray, seed: int) -> Tensor:
    """Draws `train[c]` nodes of each class c for training, then `val[c]` of the rest for validation.

    The other labeled nodes are for testing. `y` is int64 [M], -1 is unlabeled; `train` and `val` are int [C].
    """
    label = y.numpy()
    shuffled = np.random.default_rng(seed).permutation(np.flatnonzero(label >= 0))
    by_class = shuffled[np.argsort(label[shuffled], kind="stable")]
    c = label[by_class]
    first_of_class = np.searchsorted(c, c)
    rank = np.arange(len(c)) - first_of_class
    split = np.zeros(len(label), np.int8)
    split[by_class] = TRAIN + (rank >= train[c]) + (rank >= train[c] + val[c])
    return torch.from_numpy(split)
