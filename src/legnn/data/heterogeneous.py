"""Several node types in one graph: a PyG `HeteroData` as a homogeneous graph.

As in the paper, types and relations are dropped: nodes are numbered type after type, and all edges are of one kind. The
type of each node is kept, and the model projects the features of each type with a matrix of its own. One type has
labels, the target, and only its nodes are predicted.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from legnn.config.data import DataSettings
from legnn.data import conversion
from legnn.data.cache import digest_of, read_tensor, write_tensor
from legnn.data.embedding import SEED, check_published, embed
from legnn.data.node_types import NodeTypes, Relation
from legnn.data.raw_graph import RawGraph
from legnn.data.splits import MASKS, NO_SPLIT
from legnn.data.validation import check_finite
from legnn.errors import InputError, plural
from legnn.notes import Note

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

MAX_TARGET_CHANNELS = 512
"""The labeled type keeps its features unchanged up to this many columns."""
SPARSE_BELOW = 0.2
"""A matrix with a smaller fraction of entries is reduced as a sparse one."""


def to_homogeneous(
    graph: HeteroData, settings: DataSettings, *, name: str, training: bool = True, target_type: str | None = None
) -> RawGraph:
    """Returns the graph with all nodes in one numbering; columns of `x` that a narrower type does not have are zero.

    Each node type may have `x` [n, F], `feature_names` and `node_id`; the labeled one has `y` [n] and optionally masks,
    `class_names`, `label_x` and `label_adjacency`. Each relation has `edge_index` and may have `edge_weight`, which is
    1 elsewhere. The other arguments are those of `raw_from_pyg`.
    """
    graph = copy(graph)  # `graph[kind]` adds a type that edges alone name
    relations, sizes = _relations(graph, name)
    labeled = _labeled_type(graph, sizes, name, target_type, training)
    target = target_type or labeled or next(iter(sizes))
    count = torch.tensor(list(sizes.values()))
    node_type = torch.repeat_interleave(torch.arange(len(sizes)), count)
    types = NodeTypes(names=list(sizes), node_type=node_type, target=target, columns=[])
    first = dict(zip(sizes, count.cumsum(0) - count, strict=True))
    ends = [index + torch.stack([first[source], first[end]])[:, None] for (source, _, end), index in relations.items()]
    edge_index = torch.cat([torch.empty(2, 0, dtype=torch.int64), *ends], 1)
    notes = conversion.to_notes(graph.get("notes"))
    features, computed, feature_digest = _features(graph, types, edge_index, settings, name, notes)
    x = torch.zeros(len(node_type), max(x.size(1) for x in features.values()))
    for kind, rows in zip(sizes, x.split(count.tolist()), strict=True):
        rows[:, : features[kind].size(1)] = features[kind]
    y, split = _labels(graph, labeled, sizes, name)
    store = graph[labeled] if labeled is not None else {}
    return RawGraph(
        name=name,
        x=x,
        y=y,
        edge_index=edge_index,
        edge_weight=_weights(graph, relations, name, notes),
        split=split,
        class_names=conversion.to_class_names(store.get("class_names"), y),
        node_id=_node_ids(graph, sizes, target, name),
        has_ids=store.get("node_id") is not None,
        table_features=graph.get("table_features"),
        label_x=conversion.to_floats(store.get("label_x")),
        label_adjacency=conversion.to_floats(store.get("label_adjacency")),
        node_types=None if len(sizes) == 1 else replace(types, columns=_columns(graph, features, types.names)),
        computed_features=computed,
        feature_digest=feature_digest,
        notes=notes,
    )


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _labeled_type(
    graph: HeteroData, sizes: dict[str, int], name: str, target_type: str | None, training: bool
) -> str | None:
    """Returns the type that has labels, which must be the one to be predicted; None if nothing is labeled."""
    labeled = [kind for kind in sizes if graph[kind].get("y") is not None]
    if len(labeled) > 1:
        raise InputError(
            f"{name} has y for the types {_listed(labeled)}; keep that of the one type that is to be classified"
        )
    if not labeled and training:
        raise InputError(
            f"no node type of {name} has y; give the one that is to be classified its classes (types: "
            f"{_listed([*sizes])})"
        )
    if not any(sizes.values()):
        raise InputError(f"{name} has no nodes; there must be at least one of each class")
    if target_type is not None and target_type not in sizes:
        raise InputError(
            f"{name} has no node type {target_type!r}, the one to be predicted; it has {_listed([*sizes])}"
        )
    if target_type is not None and labeled not in ([], [target_type]):
        raise InputError(
            f"{name} has labels of {labeled[0]!r}, but {target_type!r} is to be predicted; take the labels out"
        )
    return labeled[0] if labeled else None


def _relations(graph: HeteroData, name: str) -> tuple[dict[Relation, Tensor], dict[str, int]]:
    """Returns the edges of each relation and the nodes of each type.

    Ends are checked here because in one numbering of all nodes they cannot be.
    """
    relations: dict[Relation, Tensor] = {}
    for relation in graph.edge_types:
        index = graph[relation].get("edge_index")
        if not isinstance(index, Tensor) or index.dim() != 2 or index.size(0) != 2:
            raise InputError(f"edge_index of {relation} of {name} must be a tensor [2, E]")
        relations[relation] = conversion.to_integers(index, f"edge_index of {relation}", name)
    types = dict.fromkeys([*graph.node_types, *(kind for source, _, target in relations for kind in (source, target))])
    sizes = {kind: _size(graph, kind, relations) for kind in types}
    for relation, index in relations.items():
        for row, kind in zip(index, relation[::2], strict=True):
            outside = (row < 0) | (row >= sizes[kind])
            if outside.any():
                edge = int(outside.to(torch.uint8).argmax())
                raise InputError(
                    f"{plural(int(outside.sum()), 'edge')} of {relation} of {name} name a node of type {kind!r} that "
                    f"does not exist, the first is edge {edge} ({int(row[edge])}); there are {sizes[kind]:,}, numbered "
                    f"from 0"
                )
    return relations, sizes


def _size(graph: HeteroData, kind: str, relations: dict[Relation, Tensor]) -> int:
    """Returns the nodes of a type: its rows, its `num_nodes`, or the largest number in its edges and one."""
    store = graph[kind]
    for field in ("x", "y", "node_id", *MASKS):
        if store.get(field) is not None:
            return len(store[field])
    if store.get("num_nodes") is not None:
        return int(store["num_nodes"])
    ends = [
        end for (source, _, target), index in relations.items() for end in zip((source, target), index, strict=True)
    ]
    return max((int(nodes.max()) + 1 for end, nodes in ends if end == kind and len(nodes)), default=0)


def _features(
    graph: HeteroData, types: NodeTypes, edge_index: Tensor, settings: DataSettings, name: str, notes: list[Note]
) -> tuple[dict[str, Tensor], list[str], str]:
    """Returns `x` [n, F] of each type, the types whose features were computed, and the digest of what from.

    Without a column where all features are computed later, from the edges of the whole graph.
    """
    size = torch.bincount(types.node_type, minlength=len(types.names)).tolist()
    if settings.features != "given":
        return {kind: torch.empty(n, 0) for kind, n in zip(types.names, size, strict=True)}, [], ""
    channels, method = settings.type_channels, settings.missing_features
    stored_features = _stored_features(graph, name)
    missing = [kind for kind in types.names if kind not in stored_features]
    features = dict(stored_features)
    if missing:
        if method == "published":
            check_published(graph.edge_types)
        x = embed(edge_index, len(types.node_type), channels, method, types, missing)
        rows = x.split([n for kind, n in zip(types.names, size, strict=True) if kind in missing])
        features |= dict(zip(missing, rows, strict=True))
        text = f"Nodes of {_listed(missing)} come without features: {channels} were computed from the graph ({method})."
        notes.append(Note("features-computed", text))
    named = [kind for kind in stored_features if graph[kind].get("feature_names")]
    reduced = _reduce(features, types.target, channels, named, notes)
    if not missing and not reduced:
        return features, [], ""
    how = f"{method} {channels} {missing} {reduced}"
    return features, [*missing, *reduced], digest_of([how, *stored_features.values()])


def _stored_features(graph: HeteroData, name: str) -> dict[str, Tensor]:
    """Returns `x` [n, F] of each type that has features."""
    stored_features: dict[str, Tensor] = {}
    for kind in graph.node_types:
        store = graph[kind]
        x = store.get("x")
        if x is None:
            continue
        if not isinstance(x, Tensor) or x.dim() != 2:
            raise InputError(f"x of {kind!r} of {name} must be a tensor [n, F], a row for each {kind}")
        if x.size(1):
            stored_features[kind] = conversion.to_features(x, f"{kind!r} of {name}")
            ids = conversion.to_node_ids(store.get("node_id"), len(x))
            check_finite(stored_features[kind], f"{kind!r} of {name}", ids, store.get("feature_names"))
    return stored_features


def _reduce(features: dict[str, Tensor], target: str, channels: int, named: list[str], notes: list[Note]) -> list[str]:
    """Reduces, in place, types that are wider than the others may be; returns their names. A single type stays.

    Features that were reduced exist for no other graph: columns of tables, which are `named`, may be wider.
    """
    width = features[target].size(1)
    width = max(channels, width) if width <= MAX_TARGET_CHANNELS or len(features) == 1 else channels
    most = {kind: max(width, MAX_TARGET_CHANNELS) if kind in named else width for kind in features}
    wide = [kind for kind, x in features.items() if x.size(1) > most[kind]]
    for kind in wide:
        x = features[kind]
        key = digest_of([f"svd {width} {SEED}", x])
        stored = read_tensor(key)
        features[kind] = write_tensor(key, _principal(x, width)) if stored is None else stored
        text = f"Features of {kind} were reduced from {x.size(1):,} to {features[kind].size(1):,} by truncated SVD."
        notes.append(Note("features-reduced", text))
    return wide


def _principal(x: Tensor, width: int) -> Tensor:
    """Returns `U S` `[n, width]` of the truncated, randomized singular value decomposition of `x` [n, F]."""
    is_sparse = float((x != 0).float().mean()) < SPARSE_BELOW
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        U, S, _ = torch.svd_lowrank(x.to_sparse() if is_sparse else x, q=min(width, *x.shape))
    return U * S


def _weights(graph: HeteroData, relations: dict[Relation, Tensor], name: str, notes: list[Note]) -> Tensor | None:
    unused = [relation[1] for relation in relations if graph[relation].get("edge_attr") is not None]
    if unused:
        text = f"edge_attr of {_listed(unused)} is left aside; a weight for each edge goes into edge_weight."
        notes.append(Note("edge-attr-ignored", text))
    weights = {relation: conversion.to_floats(graph[relation].get("edge_weight")) for relation in relations}
    if all(weight is None for weight in weights.values()):
        return None
    parts = []
    for relation, weight in weights.items():
        count = relations[relation].size(1)
        if weight is not None and list(weight.shape) != [count]:
            raise conversion.shape_error(f"edge_weight of {relation}", weight, name, f"be [{count}]")
        parts.append(torch.ones(count) if weight is None else weight)
    return torch.cat(parts)


def _node_ids(graph: HeteroData, sizes: dict[str, int], target: str, name: str) -> np.ndarray:
    """Returns ids `[M]`, numbers or text as those of the target are. Two types may have the same ids."""
    ids: dict[str, np.ndarray] = {}
    for kind, size in sizes.items():
        ids[kind] = conversion.to_node_ids(graph[kind].get("node_id"), size)
        if len(ids[kind]) != size:
            raise InputError(f"{kind!r} of {name} has {plural(size, 'node')} and {len(ids[kind]):,} in node_id")
    if ids[target].dtype == object:
        return np.concatenate([each.astype(str).astype(object) for each in ids.values()])
    # next to numbers, types with text ids are numbered by row
    return np.concatenate([np.arange(len(each)) if each.dtype == object else each for each in ids.values()])


def _labels(graph: HeteroData, labeled: str | None, sizes: dict[str, int], name: str) -> tuple[Tensor, Tensor | None]:
    """Returns `y` `[M]`, -1 for nodes of other types, and the split, 0 for them."""
    if labeled is None:
        return torch.full((sum(sizes.values()),), -1), None
    store: Any = graph[labeled]
    if not isinstance(store["y"], Tensor):
        raise InputError(f"y of {name} is a {type(store['y']).__name__}; it must be a tensor")
    y, nodes = conversion.to_classes(store["y"], name), sizes[labeled]
    for field, rows in (("y", y), *((mask, store.get(mask)) for mask in MASKS)):
        if rows is not None and len(rows) != nodes:
            raise InputError(
                f"{field} of {name} has {plural(len(rows), 'row')}, and there are {plural(nodes, 'node')} of its type"
            )
    split = conversion.to_split(store, nodes, conversion.to_node_ids(store.get("node_id"), nodes), name)

    def of_all_types(rows: Tensor, fill: int) -> Tensor:
        other = {kind: rows.new_full((size, *rows.shape[1:]), fill) for kind, size in sizes.items()}
        return torch.cat(list((other | {labeled: rows}).values()))

    return of_all_types(y, -1), None if split is None else of_all_types(split, NO_SPLIT)


def _columns(graph: HeteroData, features: dict[str, Tensor], kinds: list[str]) -> list[list[str]]:
    """Returns the names of the columns of each type, and numbers for those without."""
    columns = []
    for kind in kinds:
        names, width = graph[kind].get("feature_names"), features[kind].size(1)
        # computed features have no names, and those of given features name other columns
        columns.append([str(name) for name in (names if names and len(names) == width else range(width))])
    return columns
