"""Several node types in one graph: a PyG `HeteroData` to one `Data`.

As in the paper, types and relations are dropped: nodes are laid out type after type, and every edge is one of the same
kind. What a node is stays in `node_type`, by which the model projects the features of each type with a matrix of its
own. One type has labels, the target, and only its nodes are predicted.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from legnn.config.data import DataSettings
from legnn.data.complete import MASKS, class_indices, dense_floats, node_ids, whole_numbers
from legnn.data.embedding import SEED, embed
from legnn.data.fingerprint import digest_of
from legnn.data.typed_edges import TypedEdges
from legnn.data.validate import check_finite
from legnn.errors import InputError, plural
from legnn.io.cache import cached

MOST_OWN_CHANNELS = 512
"""The labeled type keeps its features as they are up to this many columns."""
SPARSE_BELOW = 0.2
"""A matrix with a smaller fraction of entries is reduced as a sparse one."""


def to_homogeneous(
    graph: HeteroData, settings: DataSettings, *, name: str, training: bool = True, target_type: str | None = None
) -> Data:
    """The graph as a plain `Data`, for `complete` to go on with.

    Args:
        graph: each node type may have `x` [n, F] and `node_id`; the labeled one `y` [n] and what a `Data` may have
            besides (masks, `class_names`, `label_x`, `label_adjacency`). Each relation has `edge_index` and may have
            `edge_weight`, which is 1 elsewhere.
        settings: `type_channels` and `missing_features`.
        name: what to call the graph.
        training: whether a type must have labels.
        target_type: the type to be predicted; None for the one that has labels.

    Returns:
        `x` [M, W], where W is the width of the widest type, columns that a narrower type does not have are zero;
        `y` [M], -1 for nodes of other types; masks; `edge_index`; `node_id`; `notes`; `computed_features`, the types
        whose features were computed from this graph and exist for no other, with `feature_digest` of what they come
        from. With several types also `node_type` int64 [M], an index into `type_names`; `target_mask` bool [M], nodes
        of the labeled type; `type_columns`, the names of each type's own columns.
    """
    labeled = _labeled_type(graph, name, training)
    edges = _edges(graph, name)
    _check_target(target_type, labeled, edges, name)
    notes = list(graph.get("notes") or [])
    given = _given_features(graph, edges, name)
    missing = [kind for kind, x in given.items() if x is None]
    found = {kind: x for kind, x in given.items() if x is not None}
    target = target_type or labeled or next(iter(edges.sizes))
    if missing:
        found |= embed(edges, missing, target, settings.missing_features, settings.type_channels)
        notes.append(
            f"Nodes of {_listed(missing)} come without features: {settings.type_channels} were computed from the "
            f"graph ({settings.missing_features})."
        )
    reduced = _reduce(found, target, settings.type_channels, notes)
    width = max(x.size(1) for x in found.values())

    data = Data(edge_index=edges.edge_index(), notes=notes, x=torch.zeros(edges.num_nodes, width))
    starts, sizes = edges.starts, edges.sizes
    for kind in sizes:
        data.x[starts[kind] :][: sizes[kind], : found[kind].size(1)] = found[kind]
    _add_weights(data, graph, edges, name)
    data.node_id = _ids(graph, edges, target, name)
    if labeled is not None:
        _add_labels(data, graph[labeled], starts[labeled], sizes[labeled], name)
    if missing or reduced:
        data.computed_features = [*missing, *reduced]
        sources = [x for x in given.values() if x is not None]
        how = f"{settings.missing_features} {settings.type_channels} {missing} {reduced}"
        data.feature_digest = digest_of([how, *sources])
    if len(sizes) > 1:
        data.type_names = list(sizes)
        data.node_type = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(list(sizes.values())))
        data.target_mask = data.node_type == data.type_names.index(target)
        data.type_columns = [_columns(graph, kind, found[kind].size(1)) for kind in sizes]
    if graph.get("text_features") is not None:
        data.text_features = graph.text_features
    return data


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _labeled_type(graph: HeteroData, name: str, training: bool) -> str | None:
    labeled = [kind for kind in graph.node_types if graph[kind].get("y") is not None]
    if len(labeled) > 1:
        raise InputError(
            f"{name} has y for the types {_listed(labeled)}; keep that of the one type that is to be classified"
        )
    if not labeled and training:
        types = _listed(graph.node_types) if graph.node_types else "none"
        raise InputError(
            f"no node type of {name} has y; give the one that is to be classified its classes (types: {types})"
        )
    return labeled[0] if labeled else None


def _check_target(target_type: str | None, labeled: str | None, edges: TypedEdges, name: str) -> None:
    if not edges.num_nodes:
        raise InputError(f"{name} has no nodes; there must be at least one of each class")
    if target_type is None:
        return
    if target_type not in edges.sizes:
        raise InputError(
            f"{name} has no node type {target_type!r}, the one to be predicted; it has {_listed([*edges.sizes])}"
        )
    if labeled not in (None, target_type):
        raise InputError(
            f"{name} has labels of {labeled!r}, but {target_type!r} is to be predicted; take the labels out"
        )


def _edges(graph: HeteroData, name: str) -> TypedEdges:
    """Sizes and relations, with every end checked: once all nodes are in one numbering nobody could."""
    relations: dict[tuple[str, str, str], Tensor] = {}
    for relation in graph.edge_types:
        what = f"edge_index of {relation} of {name}"
        index = graph[relation].get("edge_index")
        if not isinstance(index, Tensor) or index.dim() != 2 or index.size(0) != 2:
            raise InputError(f"{what} must be a tensor [2, E]")
        relations[relation] = whole_numbers(index, f"edge_index of {relation}", name)
    types = dict.fromkeys([*graph.node_types, *(kind for source, _, target in relations for kind in (source, target))])
    sizes = {kind: _size(graph, kind, relations) for kind in types}
    for relation, index in relations.items():
        for row, kind in zip(index, (relation[0], relation[2]), strict=True):
            outside = (row < 0) | (row >= sizes[kind])
            if outside.any():
                edge = int(outside.to(torch.uint8).argmax())
                raise InputError(
                    f"{plural(int(outside.sum()), 'edge')} of {relation} of {name} name a node of type {kind!r} that "
                    f"does not exist, the first is edge {edge} ({int(row[edge])}); there are {sizes[kind]:,}, numbered "
                    f"from 0"
                )
    return TypedEdges(sizes, relations)


def _size(graph: HeteroData, kind: str, relations: dict[tuple[str, str, str], Tensor]) -> int:
    """Nodes of a type: as many as it says or has rows, or as its edges name."""
    store = graph[kind] if kind in graph.node_types else {}
    for field in ("x", "y", "node_id", *MASKS):
        if store.get(field) is not None:
            return len(store[field])
    if store.get("num_nodes") is not None:
        return int(store["num_nodes"])
    ends = [
        index[side]
        for (source, _, target), index in relations.items()
        for side, end in enumerate((source, target))
        if end == kind and index.size(1)
    ]
    return max((int(end.max()) + 1 for end in ends), default=0)


def _given_features(graph: HeteroData, edges: TypedEdges, name: str) -> dict[str, Tensor | None]:
    """Each type's own `x` [n, F], or None where it has none."""
    given: dict[str, Tensor | None] = dict.fromkeys(edges.sizes)
    for kind in graph.node_types:
        store = graph[kind]
        x = store.get("x")
        if x is None:
            continue
        if not isinstance(x, Tensor) or x.dim() != 2:
            raise InputError(f"x of {kind!r} of {name} must be a tensor [n, F], a row for each {kind}")
        if x.size(1) == 0:
            continue
        dense = dense_floats(x, f"{kind!r} of {name}")
        ids = node_ids(store.get("node_id"), len(dense)).tolist()
        check_finite(dense, f"{kind!r} of {name}", partial(_named, ids), store.get("feature_names"))
        given[kind] = dense
    return given


def _named(ids: list[int | str], row: int) -> str:
    return repr(ids[row])


def _reduce(found: dict[str, Tensor], target: str, channels: int, notes: list[str]) -> list[str]:
    """Bring the types that are too wide to the common width, in place; gives their names.

    One type alone has nobody to agree with, and stays as it is.
    """
    own = found[target].size(1)
    width = max(channels, own) if own <= MOST_OWN_CHANNELS or len(found) == 1 else channels
    wide = [kind for kind, x in found.items() if x.size(1) > width]
    for kind in wide:
        x = found[kind]
        found[kind] = cached([f"svd {width} {SEED}", x], partial(_principal, x, width))
        notes.append(f"Features of {kind} were reduced from {x.size(1):,} to {found[kind].size(1):,} by truncated SVD.")
    return wide


def _principal(x: Tensor, width: int) -> Tensor:
    """`U S` `[n, width]` of the truncated, randomized singular value decomposition of `x` [n, F]."""
    few = float((x != 0).float().mean()) < SPARSE_BELOW
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        U, S, _ = torch.svd_lowrank(x.to_sparse() if few else x, q=min(width, *x.shape))
    return U * S


def _add_weights(data: Data, graph: HeteroData, edges: TypedEdges, name: str) -> None:
    weights = {relation: graph[relation].get("edge_weight") for relation in edges.relations}
    if any(weight is not None for weight in weights.values()):
        for relation, weight in weights.items():
            count = edges.relations[relation].size(1)
            if weight is not None and list(weight.shape) != [count]:
                raise InputError(
                    f"edge_weight of {relation} of {name} has the shape {list(weight.shape)}; it must be [{count}]"
                )
        data.edge_weight = torch.cat(
            [
                torch.ones(edges.relations[relation].size(1)) if weight is None else weight.detach().cpu().float()
                for relation, weight in weights.items()
            ]
        )
    left = [relation[1] for relation in edges.relations if graph[relation].get("edge_attr") is not None]
    if left:
        data.notes.append(f"edge_attr of {_listed(left)} is left aside; a weight for each edge goes into edge_weight.")


def _ids(graph: HeteroData, edges: TypedEdges, target: str, name: str) -> np.ndarray:
    """`[M]` ids, all of the kind the target's are: its own must come out as they went in.

    Ids differ within a type; two types may use the same ones.
    """
    ids: dict[str, np.ndarray] = {}
    for kind, size in edges.sizes.items():
        given = graph[kind].get("node_id") if kind in graph.node_types else None
        ids[kind] = node_ids(given, size)
        if len(ids[kind]) != size:
            raise InputError(f"{kind!r} of {name} has {plural(size, 'node')} and {len(ids[kind]):,} in node_id")
    if ids[target].dtype == object:
        return np.concatenate([one.astype(str).astype(object) for one in ids.values()])
    # text among numbers: rows are numbered in place of it
    return np.concatenate([np.arange(len(one)) if one.dtype == object else one for one in ids.values()])


def _add_labels(data: Data, store: Any, start: int, size: int, name: str) -> None:
    """Labels and splits of the target's rows, nothing for the others."""
    if not isinstance(store["y"], Tensor):
        raise InputError(f"y of {name} is a {type(store['y']).__name__}; it must be a tensor")
    fields = {"y": class_indices(store["y"], name)}
    fields |= {mask: store[mask].detach().cpu().bool() for mask in MASKS if store.get(mask) is not None}
    for field, mine in fields.items():
        if len(mine) != size:
            raise InputError(
                f"{field} of {name} has {plural(len(mine), 'row')}, and there are {plural(size, 'node')} of its type"
            )
        data[field] = mine.new_full((len(data.x), *mine.shape[1:]), -1 if field == "y" else 0)
        data[field][start : start + size] = mine
    for field in ("class_names", "label_x", "label_adjacency"):
        if store.get(field) is not None:
            data[field] = store[field]


def _columns(graph: HeteroData, kind: str, width: int) -> list[str]:
    """The names of a type's columns: its own, or numbers where it has none or they were computed."""
    names = graph[kind].get("feature_names") if kind in graph.node_types else None
    if names is not None and len(names) == width:
        return [str(name) for name in names]
    return [str(number) for number in range(width)]
