"""`GraphData`: the one typed graph that the library trains on and predicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from legnn.config.data import DataSettings
from legnn.config.facts import GraphFacts
from legnn.data.digest import digest_of
from legnn.data.node_types import NodeTypes
from legnn.data.pyg import raw_from_pyg
from legnn.data.raw_graph import RawGraph, TextTransform
from legnn.data.splits import MASKS, Split, empty_split, pick_split, split_number, stratified_split
from legnn.data.summary import edge_homophily
from legnn.data.validation import validate
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.build import edges_to_csr


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a graph comes from."""

    raw_edges: int
    """Edges before reverse edges and self-loops were added and duplicates removed."""
    homophily: float
    """Fraction of these edges whose ends share a class; NaN if no edge has two labeled ends."""
    prepared_with: DataSettings | None = None
    """The settings it was loaded with."""
    computed_features: list[str] = field(default_factory=list)
    """Node types whose features were computed from this graph and exist for no other."""
    feature_digest: str = ""
    """Digest of what computed features were computed from."""
    fingerprint: str = ""
    """Of a prepared folder: the stored one, so that nothing has to be read to compute it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphData:
    """A validated graph on the CPU; change one with `dataclasses.replace`."""

    name: str
    adjacency: Adjacency
    """`[M, M]`, row = target; reverse edges and self-loops are there, duplicates are not, as the settings say."""
    x: Tensor
    """`[M, F]` float32."""
    y: Tensor
    """`[M]` int64, -1 is unlabeled."""
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    """`[M]` bool."""
    class_names: list[str | int | float]
    node_id: np.ndarray
    """`[M]` int64 or text."""
    feature_names: list[str] | None = None
    text_features: TextTransform | None = None
    """How features were computed from a text column."""
    label_x: Tensor | None = None
    """`[C, F']` float32, features of the labels."""
    label_adjacency: Tensor | None = None
    """`[C, C]` float32, weights of label–label edges, row = target."""
    node_types: NodeTypes | None = None
    """Of a graph with several node types."""
    provenance: Provenance
    notes: list[str] = field(default_factory=list)
    """Sentences that a reader of the scores should know."""

    @property
    def num_nodes(self) -> int:
        """`M`."""
        return len(self.x)

    @property
    def num_edges(self) -> int:
        """Entries of the adjacency, self-loops included."""
        return self.adjacency.num_edges

    @property
    def num_features(self) -> int:
        """`F`."""
        return self.x.size(1)

    @property
    def num_classes(self) -> int:
        """`C`."""
        return len(self.class_names)

    @property
    def num_types(self) -> int:
        """Node types; 1 for a homogeneous graph."""
        return 1 if self.node_types is None else len(self.node_types.names)

    @property
    def node_type(self) -> Tensor | None:
        """`[M]` int64, or None for a homogeneous graph."""
        return None if self.node_types is None else self.node_types.node_type

    @property
    def target_index(self) -> Tensor | None:
        """`[n]` nodes of the type that is predicted; None for a homogeneous graph, of which every node is."""
        return None if self.node_types is None else self.node_types.target_mask.nonzero().flatten()

    def facts(self) -> GraphFacts:
        """Returns the numbers that presets decide by."""
        return GraphFacts(
            num_train=int(self.train_mask.sum()),
            num_classes=self.num_classes,
            counts_features=self._counts_features(),
            has_label_edges=self.label_adjacency is not None,
        )

    def _counts_features(self) -> bool:
        """Whether no feature is negative and more than half are zero; of several node types, the target decides."""
        x = self.x
        if self.node_types is not None:
            columns = self.node_types.columns[self.node_types.names.index(self.node_types.target)]
            x = x[self.node_types.target_mask, : len(columns)]
        # reductions alone: a mask would be as large as x, which may not fit into memory
        return float(x.min()) >= 0 and 2 * int(torch.count_nonzero(x)) < x.numel()

    def fingerprint(self) -> str:
        """Returns a digest of features, labels, edges and splits, equal only for the same graph on any machine."""
        if self.provenance.fingerprint:
            return self.provenance.fingerprint
        # computed features may differ in the last bit from machine to machine; what they are computed from does not
        source = self.provenance.feature_digest
        fields = {
            "x": None if source else self.x,
            "y": self.y,
            **{field: getattr(self.adjacency, field) for field in ("rowptr", "col", "weight")},
            **{mask: getattr(self, mask) for mask in MASKS},
            "label_x": self.label_x,
            "label_adjacency": self.label_adjacency,
            "node_type": self.node_type,
            "target_mask": None if self.node_types is None else self.node_types.target_mask,
        }
        there = [(name, value) for name, value in fields.items() if value is not None]
        return digest_of([source, *(part for pair in there for part in pair)])

    @classmethod
    def from_pyg(
        cls, data: Data | HeteroData, *, training: bool = True, target_type: str | None = None, **options: Any
    ) -> GraphData:
        """Returns the validated graph of a PyG `Data` or `HeteroData`, which is left unchanged.

        Args:
            data: as `raw_from_pyg` describes.
            training: False for a graph that is only predicted: labels and splits may be missing, and none is drawn.
            target_type: of several node types, the one to be predicted; None for the one that has labels.
            **options: fields of `DataSettings`.
        """
        settings = DataSettings(**options)
        raw = raw_from_pyg(data, settings, training=training, target_type=target_type)
        return cls.from_raw(raw, replace(settings, source=raw.name), training=training)

    @classmethod
    def from_raw(cls, raw: RawGraph, settings: DataSettings, *, training: bool = True) -> GraphData:
        """Returns the graph with its split chosen or drawn, checked, and its edges built into rows."""
        split, notes = _choose_split(raw, split_number(settings.split), training)
        validate(raw, split, training=training)
        source, target = raw.edge_index.numpy()
        rows = edges_to_csr(
            source,
            target,
            None if raw.edge_weight is None else raw.edge_weight.numpy(),
            len(raw.x),
            undirected=settings.undirected,
            remove_duplicates=settings.remove_duplicates,
            self_loops=settings.self_loops,
        )
        return cls(
            name=raw.name,
            adjacency=Adjacency.from_csr(rows, len(raw.x)),
            x=raw.x,
            y=raw.y,
            train_mask=split.train,
            val_mask=split.val,
            test_mask=split.test,
            class_names=raw.class_names,
            node_id=raw.node_id,
            feature_names=raw.feature_names,
            text_features=raw.text_features,
            label_x=raw.label_x,
            label_adjacency=raw.label_adjacency,
            node_types=raw.node_types,
            provenance=Provenance(
                raw_edges=raw.edge_index.size(1),
                homophily=edge_homophily(raw.edge_index, raw.y),
                prepared_with=settings,
                computed_features=raw.computed_features,
                feature_digest=raw.feature_digest,
            ),
            notes=notes,
        )

    def to_pyg(self) -> Data:
        """Returns the graph as a PyG `Data`, with `edge_index` `[2, E]` in PyG's order (source, target)."""
        fields: dict[str, Any] = {
            **{name: getattr(self, name) for name in ("name", "x", "y", *MASKS, "class_names", "node_id", "notes")},
            **{name: getattr(self, name) for name in ("feature_names", "text_features", "label_x", "label_adjacency")},
            "edge_index": self.adjacency.edge_index,
            "edge_weight": self.adjacency.weight,
            "computed_features": self.provenance.computed_features or None,
            "feature_digest": self.provenance.feature_digest or None,
        }
        if self.node_types is not None:
            types = self.node_types
            fields |= {"node_type": types.node_type, "target_mask": types.target_mask, "target_type": types.target}
            fields |= {"type_names": types.names, "type_columns": types.columns}
        return Data(**{name: value for name, value in fields.items() if value is not None})


def _choose_split(raw: RawGraph, split: int | None, training: bool) -> tuple[Split, list[str]]:
    """Returns the split and the notes: of the graph's masks, or drawn where it has none and is trained on."""
    if raw.masks is not None:
        return pick_split(raw.masks, None if raw.is_split_chosen else split, raw.name), raw.notes
    if not training:
        return empty_split(len(raw.y)), raw.notes
    seed = split or 0
    note = f"{raw.name} comes without a split: 60/20/20 of the labeled nodes were drawn, class by class (seed {seed})."
    return stratified_split(raw.y, seed), [*raw.notes, note]
