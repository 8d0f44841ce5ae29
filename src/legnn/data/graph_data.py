"""`GraphData`: the one typed graph that the library trains on and predicts."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from legnn.config.data import DataSettings
from legnn.config.facts import GraphFacts
from legnn.data.cache import digest_of
from legnn.data.raw_graph import GraphFields, RawGraph
from legnn.data.splits import NO_SPLIT, TEST, TRAIN, VAL, pick_split, split_number, stratified_split, to_masks
from legnn.data.summary import edge_homophily
from legnn.data.validation import validate
from legnn.lazy import lazy_module
from legnn.notes import Note
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.build import edges_to_csr

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

pyg_data = lazy_module("torch_geometric.data")

NO_VALIDATION = Note(
    "no-validation",
    "No node is for validation, and those marked or drawn for it are trained on: all epochs are trained, and the last "
    "one is kept, be it the best or not.",
)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The origin of a graph: edges before cleaning, settings, computed features."""

    raw_edges: int
    """Edges before reverse edges and self-loops were added and duplicates removed; with those between classes that the
    settings add."""
    homophily: float
    """Fraction of these edges whose ends share a class; NaN if no edge has two labeled ends."""
    prepared_with: DataSettings | None = None
    """The settings it was loaded with."""
    computed_features: list[str] = field(default_factory=list)
    """Node types whose features were computed from this graph and exist for no other; `["nodes"]` without types."""
    feature_digest: str = ""
    """Digest of what computed features were computed from."""
    fingerprint: str = ""
    """Stored in a prepared folder, so that nothing has to be read to compute it."""
    hidden_fold: tuple[int, int] | None = None
    """The fold of training nodes whose labels were removed, and the number of folds; None with all labels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphData(GraphFields):
    """A validated graph on the CPU; change one with `dataclasses.replace`."""

    adjacency: Adjacency
    """`[M, M]`, row = target; reverse edges and self-loops are there, duplicates are not, as the settings say."""
    split: Tensor
    """`[M]` int8: 0 in no split, 1 train, 2 val, 3 test (`NO_SPLIT`, `TRAIN`, `VAL`, `TEST`)."""
    provenance: Provenance

    @property
    def train_mask(self) -> Tensor:
        """`[M]` bool."""
        return self.split == TRAIN

    @property
    def val_mask(self) -> Tensor:
        """`[M]` bool."""
        return self.split == VAL

    @property
    def test_mask(self) -> Tensor:
        """`[M]` bool."""
        return self.split == TEST

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

    def relations(self) -> list[tuple[int, int]]:
        """Returns the source and target type of the edges that there are, ascending; none for a homogeneous graph."""
        types, edges = self.node_types, self.adjacency
        return [] if types is None else types.relations(edges.col.long(), edges.row.long())

    @property
    def labeled_nodes(self) -> Tensor:
        """`[n]` the nodes whose class is known, ascending."""
        return (self.y >= 0).nonzero().flatten()

    def facts(self) -> GraphFacts:
        """Returns the numbers that presets decide by; of several node types, features of the target decide."""
        x, types = self.x, self.node_types
        if types is not None:
            x = x[types.target_mask, : len(types.columns[types.names.index(types.target)])]
        # columns of several kinds are of sizes that do not compare; a mask would be as large as x, which may not fit
        counts = self.table_features is None or self.table_features.is_plain
        counts = counts and float(x.min()) >= 0 and 2 * int(torch.count_nonzero(x)) < x.numel()
        return GraphFacts(
            num_train=int(self.train_mask.sum()),
            num_classes=self.num_classes,
            counts_features=counts,
            has_label_edges=self.label_adjacency is not None,
            num_types=self.num_types,
        )

    def fingerprint(self) -> str:
        """Returns a digest of features, labels, edges and splits, equal only for the same graph on any machine."""
        if self.provenance.fingerprint:
            stored, hidden = self.provenance.fingerprint, self.provenance.hidden_fold
            return stored if hidden is None else digest_of([stored, f"without fold {hidden[0]} of {hidden[1]}"])
        # computed features may differ in the last bit from machine to machine; what they are computed from does not
        source, types = self.provenance.feature_digest, self.node_types
        tensors = {
            **{name: getattr(self, name) for name in ("y", "split", "label_x", "label_adjacency", "node_type")},
            **{name: getattr(self.adjacency, name) for name in ("rowptr", "col", "weight")},
            "x": None if source else self.x,
        }
        parts = [source, "" if types is None else types.target]
        return digest_of([*parts, *chain(*((name, item) for name, item in tensors.items() if item is not None))])

    @classmethod
    def from_pyg(
        cls, data: Data | HeteroData, *, training: bool = True, target_type: str | None = None, **options: Any
    ) -> GraphData:
        """Returns the validated graph of a PyG `Data` or `HeteroData` as `raw_from_pyg` describes it.

        The other arguments are those of `legnn.load`.
        """
        from legnn.data.pyg import raw_from_pyg

        settings = DataSettings(**options)
        raw = raw_from_pyg(data, settings, training=training, target_type=target_type)
        return cls.from_raw(raw, replace(settings, source=raw.name), training=training)

    @classmethod
    def from_raw(cls, raw: RawGraph, settings: DataSettings, *, training: bool = True) -> GraphData:
        """Returns the graph with its split chosen or drawn, checked, and its edges built into rows.

        Before that, edges between classes are added and features computed from the edges, where the settings say so.
        """
        if settings.cross_label_edges:
            from legnn.data.cross_label import with_cross_label_edges

            raw = with_cross_label_edges(raw, settings.cross_label_edges, settings.cross_label_seed)
        has_none = raw.x.dim() == 2 and raw.x.size(1) == 0 and raw.node_types is None
        if settings.features != "given" or has_none:
            from legnn.data.embedding import with_computed_features

            raw = with_computed_features(raw, settings.features, settings.type_channels)
        split, notes = _choose_split(raw, split_number(settings.split), training)
        validates = settings.validation == "split"
        if training and not validates:
            split = split.masked_fill(split == VAL, TRAIN)
            notes = [*notes, NO_VALIDATION]
        validate(raw, split, training=training, validates=validates)
        weight = None if raw.edge_weight is None else raw.edge_weight.numpy()
        options = {name: getattr(settings, name) for name in ("undirected", "remove_duplicates", "self_loops")}
        source, target = raw.edge_index.numpy()
        rows = edges_to_csr(source, target, weight, len(raw.x), **options)
        content: dict[str, Any] = {item.name: getattr(raw, item.name) for item in fields(GraphFields)}
        content |= {"split": split, "notes": notes}
        return cls(
            **content,
            adjacency=Adjacency.from_csr(rows, len(raw.x)),
            provenance=Provenance(
                raw_edges=raw.edge_index.size(1),
                homophily=edge_homophily(raw.edge_index, raw.y),
                prepared_with=settings,
                computed_features=raw.computed_features,
                feature_digest=raw.feature_digest,
            ),
        )

    def to_pyg(self) -> Data:
        """Returns the graph as a PyG `Data`, with `edge_index` `[2, E]` in PyG's order (source, target)."""
        typed = ("adjacency", "node_types", "provenance", "split")
        content: dict[str, Any] = {
            **{item.name: getattr(self, item.name) for item in fields(self) if item.name not in typed},
            **to_masks(self.split),
            "edge_index": self.adjacency.edge_index,
            "edge_weight": self.adjacency.weight,
            "computed_features": self.provenance.computed_features or None,
            "feature_digest": self.provenance.feature_digest or None,
        }
        if self.node_types is not None:
            types = self.node_types
            content |= {"node_type": types.node_type, "target_mask": types.target_mask, "target_type": types.target}
            content |= {"type_names": types.names, "type_columns": types.columns}
        return pyg_data.Data(**{name: value for name, value in content.items() if value is not None})


def _choose_split(raw: RawGraph, split: int | None, training: bool) -> tuple[Tensor, list[Note]]:
    """Returns the split and the notes: of the graph, or drawn where it has none and is trained on."""
    if raw.split is not None:
        return pick_split(raw.split, None if raw.is_split_chosen else split, raw.name), raw.notes
    if not training:
        return torch.full((len(raw.y),), NO_SPLIT, dtype=torch.int8), raw.notes
    seed = split or 0
    text = f"{raw.name} comes without a split: 60/20/20 of the labeled nodes were drawn, class by class (seed {seed})."
    return stratified_split(raw.y, seed), [*raw.notes, Note("split-drawn", text)]
