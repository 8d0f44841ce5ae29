"""Metapath2vec: PyG's embedding of nodes by random walks that visit node types in a given order."""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from legnn.data.node_types import Relation, TypedEdges
from legnn.errors import InputError
from legnn.lazy import lazy_module

pyg_nn = lazy_module("torch_geometric.nn")

LEARNING_RATE = 0.01

MAG_RELATIONS: tuple[Relation, ...] = (
    ("author", "affiliated_with", "institution"),
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "has_topic", "field_of_study"),
)
"""The relations of ogbn-mag, as OGB names them."""

PUBLISHED_PATH = (
    *(("author", "writes"), ("paper", "has_topic"), ("field_of_study", "has_topic"), ("paper", "cited_by")),
    *(("paper", "writes"), ("author", "affiliated_with"), ("institution", "affiliated_with"), ("author", "writes")),
    *(("paper", "cites"), ("paper", "writes")),
)
"""Where each step of the published meta-path starts, and the relation that it follows in either direction."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Walks:
    """Random walks along a meta-path, and how the embedding is trained on them."""

    path: list[Relation]
    """The meta-path; a walk that is longer starts it again."""
    edges: dict[Relation, Tensor]
    """`[2, E]` of each relation of the path, in the direction of the walks."""
    length: int
    """Steps of a walk."""
    context: int
    """Nodes in one context, the first of which is drawn near to the others."""
    per_node: int
    """Walks that start from each node of the first type, in each epoch."""
    negatives: int
    """Random sequences of nodes for each walk."""
    epochs: int
    batch: int
    """Nodes whose walks make a step of Adam."""
    sparse: bool
    """Whether a step changes the rows of its own nodes only; otherwise momentum moves all rows."""


def metapath2vec(edges: TypedEdges, walks: Walks, channels: int, seed: int) -> Tensor:
    """Returns PyG's metapath2vec embedding `[M, channels]`: nodes that are close on random walks have similar rows.

    Rows of types that the walks do not visit, and of nodes without edges there, are zero.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        model = pyg_nn.MetaPath2Vec(
            walks.edges,
            embedding_dim=channels,
            metapath=walks.path,
            walk_length=walks.length,
            context_size=walks.context,
            walks_per_node=walks.per_node,
            num_negative_samples=walks.negatives,
            num_nodes_dict=edges.sizes,
            sparse=walks.sparse,
        ).to(device)
        adam = torch.optim.SparseAdam if walks.sparse else torch.optim.Adam
        optimizer = adam(list(model.parameters()), lr=LEARNING_RATE)
        for _ in range(walks.epochs):
            for near, random in model.loader(batch_size=walks.batch, shuffle=True):
                optimizer.zero_grad()
                model.loss(near.to(device), random.to(device)).backward()
                optimizer.step()
    x = torch.zeros(edges.num_nodes, channels)
    for name in model.start:
        x[edges.rows[name]] = model(name).detach().cpu()
    reached = torch.zeros(edges.num_nodes, dtype=torch.bool)
    for (source, _, target), index in walks.edges.items():
        for kind, end in zip((source, target), index, strict=True):
            reached[edges.rows[kind]][end] = True
    return x * reached[:, None]


def published_walks(edges: TypedEdges) -> Walks:
    """Returns the walks of the published code of LEGNN, which start from the authors of ogbn-mag.

    Raises `InputError` for a graph with other node types or relations.
    """
    if set(edges.relations) != set(MAG_RELATIONS):
        listed = ", ".join(" ".join(relation) for relation in MAG_RELATIONS)
        raise InputError(
            f"`missing_features=published` walks along the relations of ogbn-mag ({listed}), and this graph has other "
            f"ones; choose `missing_features=metapath2vec`"
        )
    along: dict[tuple[str, str], tuple[str, Tensor]] = {}
    for (source, name, target), index in edges.relations.items():
        along[target, "cited_by" if name == "cites" else name] = source, index.flip(0)
        along[source, name] = target, index
    path = [(kind, name, along[kind, name][0]) for kind, name in PUBLISHED_PATH]
    return Walks(
        path=path,
        edges={step: along[step[:2]][1] for step in path},
        length=64,
        context=7,
        per_node=5,
        negatives=5,
        epochs=5,
        batch=128,
        sparse=False,
    )


def round_trips(edges: TypedEdges, missing: list[str], start: str) -> Walks:
    """Returns walks for any graph, twice along `meta_path`."""
    between = {_relation(*pair): index for pair, index in edges.between().items()}
    path = meta_path(edges, missing, start)
    length = 2 * len(path)
    return Walks(
        path=path,
        edges={relation: between[relation] for relation in path},
        length=length,
        context=min(5, length + 1),
        per_node=1,
        negatives=1,
        epochs=4,
        batch=256,
        sparse=True,
    )


def meta_path(edges: TypedEdges, missing: list[str], start: str) -> list[Relation]:
    """Returns the `trips` one after the other.

    Types with many edges come first: a walk ends at a node without a next edge, and the rest of the meta-path is not
    visited.
    """
    return [relation for trip in trips(edges, missing, start) for relation in trip]


def trips(edges: TypedEdges, missing: list[str], start: str) -> list[list[Relation]]:
    """Returns a round trip from `start` to each type of `missing` and back along the same path.

    Paths are the shortest along relations in either direction; the shorter and those with more edges are first.
    """
    paths = _paths_from(edges, start)
    others = [name for name in missing if name != start]
    unreached = next((name for name in others if name not in paths), None)
    if unreached is not None:
        raise InputError(
            f"no relation joins the type {unreached!r} to {start!r}, so metapath2vec cannot reach it; "
            f"give it features, or choose the method spectral"
        )
    counts = {pair: index.size(1) for pair, index in edges.between().items()}
    others.sort(key=lambda name: (len(paths[name]), -counts[paths[name][-2], name]))
    if not others:  # only `start` has no features: any step away and back visits it
        away = next((target for source, target in counts if source == start), None)
        if away is None:
            raise InputError(f"the type {start!r} has neither features nor edges to make them of; give it features")
        others, paths[away] = [away], [start, away]
    return [[_relation(*pair) for pair in pairwise([*paths[name], *paths[name][-2::-1]])] for name in others]


def all_trips(edges: TypedEdges, start: str) -> list[list[Relation]]:
    """Returns the round trips from `start` to every other type and, where it has edges within itself, along these."""
    found = trips(edges, [name for name in edges.sizes if name != start], start)
    return [*found, [_relation(start, start)]] if (start, start) in edges.between() else found


def _paths_from(edges: TypedEdges, start: str) -> dict[str, list[str]]:
    """Returns the shortest path of types from `start` to every type that can be reached, both ends included."""
    pairs = list(edges.between())
    paths, queue = {start: [start]}, deque([start])
    while queue:
        here = queue.popleft()
        for source, target in pairs:
            if source == here and target not in paths:
                paths[target] = [*paths[here], target]
                queue.append(target)
    return paths


def _relation(source: str, target: str) -> Relation:
    return source, "to", target
