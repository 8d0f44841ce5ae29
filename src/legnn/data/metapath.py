"""Meta-paths: the node types that random walks visit, and in which order."""

from collections import deque
from collections.abc import Collection

from legnn.data.node_types import EdgesByTypes, NodeTypes, Relation
from legnn.errors import InputError

MAG_RELATIONS: tuple[Relation, ...] = (
    ("author", "affiliated_with", "institution"),
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "has_topic", "field_of_study"),
)
"""The relations of ogbn-mag, as OGB names them."""

PUBLISHED_TRIP = [
    *("author", "paper", "field_of_study", "paper", "paper"),
    *("author", "institution", "author", "paper", "paper", "author"),
]
"""The meta-path of the published code of LEGNN, which starts from the authors of ogbn-mag."""


def check_published(relations: Collection[Relation]) -> None:
    """Raises `InputError` for a graph that has other relations than those of `PUBLISHED_TRIP`."""
    if set(relations) != set(MAG_RELATIONS):
        listed = ", ".join(" ".join(relation) for relation in MAG_RELATIONS)
        raise InputError(
            f"`data.missing_features=published` walks along the relations of ogbn-mag ({listed}), and this graph has "
            f"other ones; choose `data.missing_features=metapath2vec`"
        )


def trips(types: NodeTypes, edges: EdgesByTypes, missing: list[str] | None = None) -> list[list[str]]:
    """Returns a round trip from the target type to each type of `missing` and back along the same path.

    Without `missing`, they go to all types and, where the target has edges within itself, along these. Paths are the
    shortest along relations in either direction; the shorter and those with more edges are first.
    """
    start = types.target
    paths = _paths_from(edges, start)
    others = [name for name in (types.names if missing is None else missing) if name != start]
    unreached = next((name for name in others if name not in paths), None)
    if unreached is not None:
        raise InputError(
            f"no relation joins the type {unreached!r} to {start!r}, so metapath2vec cannot reach it; "
            f"give it features, or choose the method spectral"
        )
    others.sort(key=lambda name: (len(paths[name]), -edges[paths[name][-2], name].size(1)))
    if not others:  # only `start` has no features: any step away and back visits it
        away = next((target for source, target in edges if source == start), None)
        if away is None:
            raise InputError(f"the type {start!r} has neither features nor edges to make them of; give it features")
        others, paths[away] = [away], [start, away]
    within = [[start, start]] if missing is None and (start, start) in edges else []
    return [[*paths[name], *paths[name][-2::-1]] for name in others] + within


def _paths_from(edges: EdgesByTypes, start: str) -> dict[str, list[str]]:
    """Returns the shortest path of types from `start` to every type that can be reached, both ends included."""
    paths, queue = {start: [start]}, deque([start])
    while queue:
        name = queue.popleft()
        for source, target in edges:
            if source == name and target not in paths:
                paths[target] = [*paths[name], target]
                queue.append(target)
    return paths
