"""Boosted decision trees as tensors: fitted by scikit-learn, kept with the weights of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

CHUNK = 2**22
"""Pairs of a row and a tree that are followed at once."""


class TreeEnsemble(nn.Module):
    """`raw_k(x) = b_k + Σ_t leaf_tk(x)`: trees of which each adds a number to the score of one of `K` columns.

    In a split a row goes to `left` if `x[feature] <= threshold`. A leaf is its own `left` and `right`. There is no
    tree before `read`, and as many as are saved after a state is loaded.
    """

    feature: Tensor
    """`[nodes]` column that a split compares."""
    threshold: Tensor
    """`[nodes]` in double precision, as scikit-learn has it."""
    left: Tensor
    right: Tensor
    """`[nodes]` where a row goes."""
    value: Tensor
    """`[nodes]` what a leaf adds."""
    root: Tensor
    """`[T K]` the trees, by iteration and column."""
    baseline: Tensor
    """`[K]` `b`."""
    depth: Tensor
    """Most splits on the way to a leaf."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("feature", "left", "right", "root"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.long))
        for name in ("threshold", "value", "baseline"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.double))
        self.register_buffer("depth", torch.zeros((), dtype=torch.long))

    def read(self, fitted: Any, columns: np.ndarray) -> None:
        """Takes over the trees of a fitted `HistGradientBoostingClassifier`, whose feature `i` is `columns[i]` here."""
        trees = [tree.nodes for iteration in fitted._predictors for tree in iteration]
        sizes = [len(tree) for tree in trees]
        start = np.cumsum([0, *sizes[:-1]])
        nodes = np.concatenate(trees)
        first, own, is_leaf = np.repeat(start, sizes), np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
        found = {
            "feature": columns[np.where(is_leaf, 0, nodes["feature_idx"])],
            "threshold": nodes["num_threshold"],
            "left": np.where(is_leaf, own, first + nodes["left"]),
            "right": np.where(is_leaf, own, first + nodes["right"]),
            "value": nodes["value"],
            "root": start,
            "baseline": fitted._baseline_prediction.ravel(),
            "depth": np.asarray(nodes["depth"].max()),
        }
        for name, values in found.items():
            buffer = getattr(self, name)
            setattr(self, name, torch.from_numpy(np.array(values)).to(buffer.device, buffer.dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Scores `[n, K]` in double precision for features `x` `[n, F]`."""
        if x.device.type == "cpu":
            # not every command needs numba, which takes a moment to import
            from legnn.baselines.tree_kernels import follow

            trees = self.feature, self.threshold, self.left, self.right, self.value, self.root, self.baseline
            return follow(x, *trees)
        rows = max(CHUNK // self.root.numel(), 1)
        return torch.cat([self.follow(chunk) for chunk in x.split(rows)])

    def follow(self, x: Tensor) -> Tensor:
        """The same on any device, all rows through all trees at once."""
        at = self.root.expand(x.size(0), -1)
        for _ in range(int(self.depth)):
            goes_left = x.gather(1, self.feature[at]) <= self.threshold[at]
            at = torch.where(goes_left, self.left[at], self.right[at])
        return self.baseline + self.value[at].unflatten(1, (-1, self.baseline.numel())).sum(1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # how many trees and leaves there are is known from the state alone
        for name, buffer in list(self.named_buffers()):
            if prefix + name in state_dict:
                setattr(self, name, buffer.new_empty(state_dict[prefix + name].shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)
