"""Splits: one of several, or one drawn."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from legnn.errors import InputError

MASKS = ("train_mask", "val_mask", "test_mask")
TRAIN_SHARE, VAL_SHARE = 0.6, 0.2


class Split(NamedTuple):
    """Nodes for training, validation and testing; all three are bool [M] and do not overlap."""

    train: Tensor
    val: Tensor
    test: Tensor


def split_number(split: int | str | None) -> int | None:
    """Returns the number of a split, or None for the default one."""
    return split if isinstance(split, int) else None


def pick_split(masks: Split, split: int | None, name: str) -> Split:
    """Returns the column `split` of masks [M, K], the first one for None; masks [M] are one split."""
    column = 0 if split is None else split
    stacked = Split(*(mask.bool().unsqueeze(1) if mask.dim() == 1 else mask.bool() for mask in masks))
    count = min(mask.shape[1] for mask in stacked)
    if column >= count:
        choice = "0" if count == 1 else f"0 to {count - 1}"
        raise InputError(f"split {column} of {name} does not exist; choose {choice}, or leave split out")
    return Split(*(mask[:, column].contiguous() for mask in stacked))


def stratified_split(y: Tensor, seed: int) -> Split:
    """Draws 60/20/20 of the labeled nodes of every class, at least one of them for training.

    A class of two or more nodes also has one for validation. Unlabeled nodes (-1) are in none of the three.
    """
    size = np.bincount(y[y >= 0].numpy(), minlength=1)
    train = np.maximum(1, np.rint(TRAIN_SHARE * size).astype(np.int64))
    val = np.maximum(1, np.rint(VAL_SHARE * size).astype(np.int64))
    return draw_split(y, train, val, seed)


def draw_split(y: Tensor, train: np.ndarray, val: np.ndarray, seed: int) -> Split:
    """Draws `train[c]` nodes of each class c for training, then `val[c]` of the rest for validation.

    The other labeled nodes are for testing. `y` is int64 [M], -1 is unlabeled; `train` and `val` are int [C].
    """
    label = y.numpy()
    shuffled = np.random.default_rng(seed).permutation(np.flatnonzero(label >= 0))
    by_class = shuffled[np.argsort(label[shuffled], kind="stable")]
    c = label[by_class]
    first_of_class = np.searchsorted(c, c)
    rank = np.arange(len(c)) - first_of_class
    part = (rank >= train[c]) + (rank >= train[c] + val[c]).astype(np.int64)
    return Split(*(index_to_mask(by_class[part == number], len(label)) for number in range(3)))


def index_to_mask(index: np.ndarray, size: int) -> Tensor:
    """Returns a mask [size] that is True at the positions `index`."""
    mask = torch.zeros(size, dtype=torch.bool)
    mask[torch.from_numpy(index)] = True
    return mask
