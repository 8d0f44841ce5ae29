"""PyG's `Data` and `HeteroData` as a `RawGraph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from legnn.config.data import DataSettings
from legnn.data import conversion
from legnn.data.heterogeneous import to_homogeneous
from legnn.data.node_types import NodeTypes
from legnn.data.raw_graph import RawGraph
from legnn.errors import InputError, plural
from legnn.lazy import is_a
from legnn.notes import Note

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

TYPES = ("node_type", "type_names", "target_type", "type_columns")
"""Fields that `GraphData.to_pyg` gives a graph of several node types."""


def raw_from_pyg(
    graph: Data | HeteroData,
    settings: DataSettings,
    *,
    name: str | None = None,
    training: bool = True,
    target_type: str | None = None,
) -> RawGraph:
    """Returns a PyG graph in the library's types; `graph` is left unchanged.

    Args:
        graph: a `HeteroData` as `to_homogeneous` describes, or a `Data` with `y` and `edge_index`, and `x` unless its
            features are to be computed from the edges. Optional: masks [M] or [M, K], `edge_weight` [E], `node_id`,
            `class_names`, `feature_names`, `notes`, `label_x` [C, F'], `label_adjacency` [C, C], and what
            `GraphData.to_pyg` adds.
        settings: `type_channels` and `missing_features`, for the features of several node types.
        name: of the graph; None for its own field `name`.
        training: whether it must have labels.
        target_type: of several node types, the one to be predicted; None for the one that has labels.
    """
    if name is None:
        stored = graph.get("name")
        name = stored if isinstance(stored, str) else "the graph"
    if is_a(graph, "torch_geometric.data", "HeteroData"):
        return to_homogeneous(graph, settings, name=name, training=training, target_type=target_type)
    fields: dict[str, Any] = {field: graph.get(field) for field in ("x", "y", "edge_index")}
    if fields["x"] is None and isinstance(fields["edge_index"], Tensor):
        # computed from the edges later
        fields["x"] = torch.empty(_num_nodes(graph, fields["edge_index"]), 0)
    if fields["y"] is None and not training and isinstance(fields["x"], Tensor):
        fields["y"] = torch.full((len(fields["x"]),), -1)
    for field, value in fields.items():
        if value is None:
            raise InputError(f"{name} has no {field}; a graph must have y [M] and edge_index [2, E]")
        if not isinstance(value, Tensor):
            raise InputError(f"{field} of {name} is a {type(value).__name__}; it must be a tensor")
    y = conversion.to_classes(fields["y"], name)
    node_id = conversion.to_node_ids(graph.get("node_id"), len(y))
    notes = conversion.to_notes(graph.get("notes"))
    if graph.get("edge_attr") is not None and graph.get("edge_weight") is None:
        text = f"edge_attr of {name} is left aside; a weight for each edge goes into edge_weight."
        notes.append(Note("edge-attr-ignored", text))
    return RawGraph(
        name=name,
        x=conversion.to_features(fields["x"], name),
        y=y,
        edge_index=conversion.to_integers(fields["edge_index"], "edge_index", name).contiguous(),
        edge_weight=conversion.to_floats(graph.get("edge_weight")),
        split=conversion.to_split(graph.to_dict(), len(y), node_id, name),
        class_names=conversion.to_class_names(graph.get("class_names"), y),
        node_id=node_id,
        has_ids=bool(graph.get("has_ids", graph.get("node_id") is not None)),
        feature_names=graph.get("feature_names"),
        table_features=graph.get("table_features"),
        label_x=conversion.to_floats(graph.get("label_x")),
        label_adjacency=conversion.to_floats(graph.get("label_adjacency")),
        node_types=_node_types(graph, len(y), name),
        computed_features=list(graph.get("computed_features") or []),
        feature_digest=graph.get("feature_digest") or "",
        notes=notes,
    )


def _num_nodes(graph: Data, edge_index: Tensor) -> int:
    """The number of nodes of a graph without `x`: of its labels, as it says itself, or by its edges."""
    if isinstance(graph.get("y"), Tensor):
        return len(graph.y)
    stored = graph.num_nodes if "num_nodes" in graph else None
    return int(stored) if stored is not None else int(edge_index.max()) + 1 if edge_index.numel() else 0


def _node_types(graph: Data, nodes: int, name: str) -> NodeTypes | None:
    # a Data may have a node_type of its own, without names; one of `to_pyg` has all of these fields
    if any(graph.get(field) is None for field in TYPES):
        return None
    node_type, names, target, columns = (graph[field] for field in TYPES)
    inside = isinstance(node_type, Tensor) and ((node_type >= 0) & (node_type < len(names)))
    if isinstance(inside, bool) or list(inside.shape) != [nodes] or not inside.all():
        raise InputError(
            f"node_type of {name} must be an int64 from 0 to {len(names) - 1} for each of the {plural(nodes, 'node')}"
        )
    if target not in names:
        raise InputError(f"target_type of {name} is {target!r}; it must be one of type_names, {', '.join(names)}")
    return NodeTypes(names=list(names), node_type=node_type.detach().cpu().long(), target=target, columns=list(columns))
