"""What models share that read the features of nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.config.model import ModelSettings
from legnn.nn.base import DataShape, Model, StagedModel
from legnn.nn.features import Features, TypedFeatures, scatter_by_type, to_sparse_if_faster
from legnn.nn.layer import check_states
from legnn.nn.scaling import FeatureScale


class FeatureInputs(Model):
    """A model of scaled features.

    With several node types, each has columns of its own, so that the first matrix is one for each type, unless the
    settings say `shared_projection`.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__()
        # the columns of the types are side by side, or one above the other
        self.num_types = 1 if settings.shared_projection else data.types
        self.num_features, self.in_channels = data.features, self.num_types * data.features
        self.scale = FeatureScale(settings.scale, data.features, data.types)

    def fit_inputs(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Computes the statistics of the features `[M, F]` that `inputs` scales by."""
        self.scale.fit(x, node_type)

    def inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Features:
        """Features `[n, F]` in the form that `forward` takes: scaled, and sparse where that is faster.

        The model computes in `dtype`. With several node types, each of `node_type` `[n]` has columns of its own among
        `[n, T F]`, unless they share a projection.
        """
        check_states("x", x, None, self.num_features)
        scaled = self.scale(x, node_type)
        if node_type is None or self.num_types == 1:
            return to_sparse_if_faster(scaled, dtype)
        return TypedFeatures.from_rows(scaled, node_type, self.num_types, dtype)


class FeatureModel(FeatureInputs, StagedModel):
    """A staged model of scaled features."""

    uses_labels = False
    has_label_nodes = False

    def batch_inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """`inputs` of some rows `[n, F]`, never sparse: testing whether that is faster takes longer than it saves."""
        check_states("x", x, None, self.num_features)
        scaled = self.scale(x, node_type)
        if node_type is not None and self.num_types > 1:
            scaled = scatter_by_type(scaled, node_type, self.num_types)
        return scaled.to(dtype or scaled.dtype)
