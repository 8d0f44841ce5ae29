"""What models share that compute a message for every edge."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.nn.feature_model import FeatureModel
from legnn.nn.features import Features


class EdgeMessageModel(FeatureModel):
    """A staged model with tensors `[E, D]`. It computes in single precision, and reads no edge weights."""

    takes_weights = False
    # 3.2 were measured with UniMP, 3.6 with GaAN
    edge_matrices = 4

    def inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Features:
        """As in `FeatureModel`, in the precision of `x`: sums over edges are too coarse in any lower one."""
        return super().inputs(x, None, node_type)

    def batch_inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """The same for some rows, never sparse."""
        return super().batch_inputs(x, None, node_type)

    def edges_of(self, block: LabelGraph) -> Tensor:
        """`[2, E]` the edges of a block (source, target); raises `InputError` if they have weights."""
        self.check_weights(weighted=block.adjacency.weight is not None)
        return block.adjacency.edge_index
