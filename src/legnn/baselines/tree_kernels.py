"""Rows on their way through boosted trees on a CPU, in numba.

A row stops at its leaf, where the tensor form goes as deep as the deepest tree.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops.runtime.arrays import row_cuts
from legnn.ops.runtime.jit import compiled
from legnn.ops.runtime.threads import run_parallel

ROWS = 256
"""Rows that go through one tree after another together: they stay in the cache, as does the tree."""


@compiled
def _follow(begin, end, x, feature, threshold, left, right, value, root, baseline, out):
    columns = baseline.size
    for first in range(begin, end, ROWS):
        last = min(first + ROWS, end)
        out[first:last] = baseline
        for tree in range(root.size):
            for i in range(first, last):
                at = root[tree]
                while left[at] != at:
                    at = left[at] if x[i, feature[at]] <= threshold[at] else right[at]
                out[i, tree % columns] += value[at]


def follow(x: Tensor, *trees: Tensor) -> Tensor:
    """Scores `[n, K]` of `x` `[n, F]`; `trees` are the buffers of `TreeEnsemble` from `feature` to `baseline`."""
    out = torch.empty(x.size(0), trees[-1].numel(), dtype=torch.double)
    arrays = [tensor.contiguous().numpy() for tensor in (x, *trees, out)]
    run_parallel(_follow, row_cuts(x.size(0)), x.size(0) * trees[-2].numel(), *arrays)
    return out
