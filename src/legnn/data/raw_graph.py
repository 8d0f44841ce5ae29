"""A graph as a reader found it: edges in a list, and no split, one split or several."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from torch import Tensor

from legnn.data.node_types import NodeTypes
from legnn.data.splits import Split


class TextTransform(Protocol):
    """Computes features from texts, as it was fitted to; `legnn.io.TextFeatures` is the one we have."""

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Returns features float32 `[len(texts), F]`."""

    def save(self, path: str | Path) -> None:
        """Write it to a file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RawGraph:
    """What a reader found, before a split is chosen and edges are built into rows. Other fields as in `GraphData`."""

    name: str
    x: Tensor
    y: Tensor
    edge_index: Tensor
    """`[2, E]` int64, source and target of each edge."""
    edge_weight: Tensor | None = None
    """`[E]` float32."""
    masks: Split | None = None
    """`[M]`, or `[M, K]` for K splits; None where a split has to be drawn."""
    is_split_chosen: bool = False
    """Whether `masks` are those of the split that the settings name."""
    class_names: list[str | int | float]
    node_id: np.ndarray
    feature_names: list[str] | None = None
    text_features: TextTransform | None = None
    label_x: Tensor | None = None
    label_adjacency: Tensor | None = None
    node_types: NodeTypes | None = None
    computed_features: list[str] = field(default_factory=list)
    feature_digest: str = ""
    notes: list[str] = field(default_factory=list)
