"""Description of the data of a run, without the data: `data.json`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from legnn.data import GraphData
from legnn.data.cache import digest_of
from legnn.notes import Note


@dataclass(frozen=True, kw_only=True)
class DataCard:
    """The data a run was trained on, without the data."""

    name: str
    fingerprint: str
    """Digest of features, labels, edges and splits: equal only for the same data."""
    nodes: int
    edges: int
    features: int
    classes: list[str | int | float]
    feature_names: list[str] | None
    label_edges: list[tuple[int, int, float]]
    """Target, source and weight of each label–label edge."""
    types: list[str]
    """Node types in the order of the model's projections; empty for a homogeneous graph."""
    target_type: str | None
    """The type that has labels."""
    type_columns: list[list[str]]
    """The features of each type."""
    computed_features: list[str]
    """Types whose features were computed from the graph, and exist for no other."""
    relations: list[tuple[int, int]]
    """Source and target type of the edges that there are, by their position in `types`."""
    notes: list[Note]
    """Notes on them, and on the settings chosen for them."""
    has_ids: bool = True
    """Whether the data name their nodes; row numbers stand for ids that they do not have."""
    edge_digest: str = ""
    """Digest of the edges, by which data without ids are recognized; empty with ids."""
    hidden_fold: tuple[int, int] | None = None
    """The fold of training nodes whose labels were removed, and the number of folds; None with all labels."""

    def __post_init__(self) -> None:
        types, classes = range(len(self.types)), range(len(self.classes))
        if min(self.nodes, self.features, len(classes)) < 1:
            raise ValueError("it says that there are no nodes, features or classes")
        if (self.target_type is not None and self.target_type not in self.types) or len(self.type_columns) != len(
            types
        ):
            raise ValueError("its types of nodes do not fit together")
        if any(kind not in types for pair in self.relations for kind in pair):
            raise ValueError("it has edges between types that there are not")
        if any(target not in classes or source not in classes for target, source, _ in self.label_edges):
            raise ValueError("it has edges between labels that there are not")

    @property
    def label_adjacency(self) -> Tensor:
        """`[C, C]` the weights of the label–label edges, row = target."""
        weights = torch.zeros(len(self.classes), len(self.classes))
        for target, source, weight in self.label_edges:
            weights[target, source] = weight
        return weights

    @classmethod
    def of(cls, graph: GraphData, fingerprint: str | None = None) -> DataCard:
        """Returns the card of a graph, with its `fingerprint` if it is known."""
        types, between = graph.node_types, graph.label_adjacency
        edges = [] if between is None else [(i, j, float(between[i, j])) for i, j in between.nonzero().tolist()]
        return cls(
            name=graph.name,
            fingerprint=graph.fingerprint() if fingerprint is None else fingerprint,
            nodes=graph.num_nodes,
            edges=graph.num_edges,
            features=graph.num_features,
            classes=list(graph.class_names),
            feature_names=graph.feature_names,
            label_edges=edges,
            types=[] if types is None else types.names,
            target_type=None if types is None else types.target,
            type_columns=[] if types is None else types.columns,
            computed_features=graph.provenance.computed_features,
            relations=graph.relations(),
            notes=graph.notes,
            has_ids=graph.has_ids,
            edge_digest="" if graph.has_ids or fingerprint == "" else digest_of_edges(graph),
            hidden_fold=graph.provenance.hidden_fold,
        )


def digest_of_edges(graph: GraphData) -> str:
    """Returns a digest of the edges, equal only for the same edges between the same rows."""
    return digest_of([graph.adjacency.rowptr, graph.adjacency.col])
