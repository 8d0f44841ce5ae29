"""Meta-paths: the node types that random walks visit, and in which order."""

from collections import deque
from itertools import pairwise

from legnn.data.node_types import Relation, TypedEdges
from legnn.errors import InputError

MAG_RELATIONS: tuple[Relation, ...] = (
    ("author", "affiliated_with", "institution"),
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "has_topic", "field_of_study"),
)
"""The relations of ogbn-mag, as OGB names them."""

PUBLISHED_PATH = (
    *("author", "paper", "field_of_study", "paper", "paper"),
    *("author", "institution", "author", "paper", "paper", "author"),
)
"""The types that the published meta-path visits."""


def published_trip(edges: TypedEdges) -> list[Relation]:
    """Returns the meta-path of the published code of LEGNN, which starts from the authors of ogbn-mag.

    Raises `InputError` for a graph with other node types or relations.
    """
    if set(edges.relations) != set(MAG_RELATIONS):
        listed = ", ".join(" ".join(relation) for relation in MAG_RELATIONS)
        raise InputError(
            f"`missing_features=published` walks along the relations of ogbn-mag ({listed}), and this graph has other "
            f"ones; choose `missing_features=metapath2vec`"
        )
    return [_relation(*pair) for pair in pairwise(PUBLISHED_PATH)]


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
