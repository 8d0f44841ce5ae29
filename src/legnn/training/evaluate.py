"""Predictions that never see their own answer."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Predict = Callable[[Tensor], Tensor]
"""From the nodes that show their labels to the logits `[M, C]` of all nodes."""


def fold_of(count: int, folds: int, seed: int) -> Tensor:
    """`[count]` the fold of each training node, drawn from the seed alone.

    Not stratified: a fold that depended on a node's label would let the label reach its prediction.
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    fold = torch.empty(count, dtype=torch.long)
    fold[order] = torch.arange(count) % folds
    return fold


def predict_without_own_label(predict: Predict, shown: Tensor, folds: int, seed: int) -> Tensor:
    """Logits `[M, C]` of every node, none of which depends on the node's own label.

    A node that shows no label is predicted with every label in `shown` in the graph, as the paper does at inference.
    A node of `shown` is predicted out of fold: the labels of its fold hidden, those of the other folds shown.
    """
    logits = predict(shown)
    out = logits.clone()
    fold = fold_of(shown.numel(), folds, seed).to(shown.device)
    for k in range(min(folds, shown.numel())):
        held = shown[fold == k]
        out[held] = predict(shown[fold != k])[held]
    return out
