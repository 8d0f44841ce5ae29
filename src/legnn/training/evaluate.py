"""Predictions that never see their own answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

Predict = Callable[[Tensor, Tensor], Tensor]
"""From the nodes that show their labels and the nodes to predict, `[n]`, to what is known of each of those `[n, …]`."""


def fold_of(node_id: np.ndarray, folds: int) -> Tensor:
    """`[M]` the fold of each node, from its id alone.

    Not from its place, so that the order of a table does not matter and a node keeps its fold in a graph that grows;
    and not stratified: a fold that depended on a node's label would let the label reach its prediction.
    """
    return torch.from_numpy((pd.util.hash_array(node_id, categorize=False) % folds).astype(np.int64))


def predict_without_own_label(predict: Predict, shown: Tensor, fold: Tensor, nodes: Tensor | None = None) -> Tensor:
    """What `predict` gives for every node, `[M, …]`, none of which depends on the node's own label. `fold` is `[M]`.

    With `nodes` `[n]`, only those are predicted; they must hold all of `shown`, and the rows of the others are zero.

    A node that shows no label is predicted with every label in `shown` in the graph, as the paper does at inference.
    A node of `shown` is predicted out of fold: the labels of its fold hidden, those of the other folds shown.
    """
    if nodes is None:
        out = predict(shown, torch.arange(fold.numel(), device=shown.device)).clone()
    else:
        rows = predict(shown, nodes)
        out = rows.new_zeros(fold.numel(), *rows.shape[1:]).index_copy_(0, nodes, rows)
    fold = fold.to(shown.device)[shown]
    for k in fold.unique().tolist():
        held = shown[fold == k]
        out[held] = predict(shown[fold != k], held)
    return out
