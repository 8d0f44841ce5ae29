"""The fields of every form of a graph, and a graph as a reader returns it: a list of edges, any number of splits."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from torch import Tensor

from legnn.data.node_types import NodeTypes
from legnn.notes import Note


class TableTransform(Protocol):
    """Interface of `legnn.io.TableFeatures`, which turns columns of node tables into features."""

    @property
    def is_plain(self) -> bool:
        """Whether all features are numbers as the tables have them."""

    def computes_same(self, other: object) -> bool:
        """Whether features of both, each of its own tables, mean the same."""

    def save(self, path: str | Path) -> None:
        """Write it to a file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphFields:
    """Nodes and classes of a graph on the CPU."""

    name: str
    x: Tensor
    """`[M, F]` float32."""
    y: Tensor
    """`[M]` int64, -1 is unlabeled."""
    class_names: list[str | int | float]
    node_id: np.ndarray
    """`[M]` int64 or text."""
    has_ids: bool = True
    """Whether the source of the graph names its nodes; row numbers stand for ids that it does not have."""
    feature_names: list[str] | None = None
    table_features: TableTransform | None = None
    """The transform that made features of the columns of tables."""
    label_x: Tensor | None = None
    """`[C, F']` float32, features of the labels."""
    label_adjacency: Tensor | None = None
    """`[C, C]` float32, weights of label–label edges, row = target."""
    node_types: NodeTypes | None = None
    """Node types; None for a homogeneous graph."""
    notes: list[Note] = field(default_factory=list)
    """Sentences that a reader of the scores should know."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RawGraph(GraphFields):
    """The graph that a reader returns, before a split is chosen and edges are built into rows."""

    edge_index: Tensor
    """`[2, E]` int64, source and target of each edge."""
    edge_weight: Tensor | None = None
    """`[E]` float32."""
    split: Tensor | None = None
    """`[M]` int8, or `[M, K]` for K splits: none (0), train, val, test; None where a split has to be drawn."""
    is_split_chosen: bool = False
    """Whether `split` is the one that the settings name."""
    computed_features: list[str] = field(default_factory=list)
    feature_digest: str = ""
