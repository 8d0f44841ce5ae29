"""Features computed from the edges alone, for node types without any or for all nodes: labels are not used."""

import warnings
from collections import deque
from collections.abc import Collection
from dataclasses import replace

import torch
from torch import Tensor

from legnn.config.data import Features, MissingFeatures
from legnn.data.cache import digest_of, read_tensor, write_tensor
from legnn.data.node_types import EdgesByTypes, NodeTypes, Relation
from legnn.data.raw_graph import RawGraph
from legnn.data.validation import check_edges, check_nodes
from legnn.errors import InputError, plural
from legnn.lazy import lazy_module
from legnn.notes import Note
from legnn.ops.runtime.threads import limit_threads

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


pyg_utils = lazy_module("torch_geometric.utils")
skip_gram = lazy_module("legnn.data.skip_gram")

SEED = 0
SPARE_COLUMNS = 16
"""Additional columns: the last eigenvectors of a subspace are the least exact."""
WALKS = "skip-gram 1"
"""Names how walks become features: to be changed with it, so that nobody gets what another way left in the cache."""
STEPS, STEPS_PER_BASIS = 15, 5
"""Products with the adjacency, and the number of them between two orthogonalizations."""


def embed(
    edge_index: Tensor,
    num_nodes: int,
    channels: int,
    method: MissingFeatures = "spectral",
    types: NodeTypes | None = None,
    missing: list[str] | None = None,
) -> Tensor:
    """Returns features `[n, channels]`, computed from the edges once and stored in the user's cache.

    They are those of all nodes, or of the nodes of the types `missing`. Walks start from the target type; the published
    ones from authors.
    """

    parts: list[str | Tensor] = [f"{method} {channels} {SEED} {num_nodes}", edge_index]
    if types is not None:
        parts += [WALKS, *types.names, "target", types.target, types.node_type, *(missing or ())]
    key = digest_of(parts)
    stored = read_tensor(key)
    if stored is not None:
        return stored
    if method == "spectral":
        x = spectral(edge_index, num_nodes, channels, SEED)
    else:
        assert types is not None, "walks go from type to type"
        edges = types.edges(edge_index)
        paths = [PUBLISHED_TRIP] if method == "published" else trips(types, edges, missing)
        x = skip_gram.embed_walks(types, edges, paths, channels, SEED)
    if types is not None and missing is not None:
        x = x[torch.isin(types.node_type, torch.tensor([types.names.index(name) for name in missing]))]
    return write_tensor(key, x)


def with_computed_features(graph: RawGraph, method: Features, channels: int) -> RawGraph:
    """Returns the graph with `channels` features of every node, of all types, computed from its edges.

    Features that the graph has are left aside. With the method `given`, one that has no features gets as many spectral
    ones as it has eigenvectors, and the logarithm of each node's degree. Raises `InputError` for walks between types on
    a graph with one.
    """
    check_nodes(graph)
    check_edges(graph)
    edge_index, nodes, types = graph.edge_index, len(graph.x), graph.node_types
    if method == "given":
        # eigenvectors are as many as nodes
        width = min(channels, nodes)
        degree = torch.bincount(edge_index.flatten(), minlength=nodes)
        x = torch.cat([embed(edge_index, nodes, width), degree.float().log1p()[:, None]], 1)
        how = f"spectral {width} {SEED} degree"
        text = (
            f"{graph.name} has no features: {plural(width, 'eigenvector')} of its graph and the degree of each node "
            f"take their place, and the run can predict this graph alone."
        )
    else:
        if method == "metapath2vec" and types is None:
            raise InputError(
                f"`data.features=metapath2vec` walks between node types, and {graph.name} has one; choose "
                f"`data.features=spectral`"
            )
        x = embed(edge_index, nodes, channels, method, None if method == "spectral" else types)
        how = f"{method} {channels} {SEED}"
        text = (
            f"The {plural(channels, 'feature')} of every node {'was' if channels == 1 else 'were'} computed from the "
            f"graph alone (`data.features={method}`); those of the data are left aside, so no figure is comparable "
            f"with published ones."
        )
    columns = [str(column) for column in range(channels)]
    return replace(
        graph,
        x=x,
        feature_names=None,
        table_features=None,
        node_types=types and replace(types, columns=[columns] * len(types.names)),
        computed_features=["nodes"] if types is None else types.names,
        feature_digest=digest_of([how]),  # the edges are in the fingerprint of the graph
        notes=[*graph.notes, Note("features-computed", text)],
    )


def spectral(edge_index: Tensor, num_nodes: int, channels: int, seed: int) -> Tensor:
    """Returns the leading eigenvectors of the normalized adjacency `[M, channels]`, rows scaled to length 1.

    `S = D_τ^{-1/2} A D_τ^{-1/2}` with `A` undirected and unweighted, and `D_τ = D + τ I`, `τ` the mean degree: without
    `τ` every tiny component would have an eigenvector of its own, as large as that of the whole graph. The subspace of
    the largest eigenvalues is found by products of `(S + I) / 2` with random columns, which leaves out the negative end
    of the spectrum: on a bipartite graph it mirrors the positive end.

    An entry of an eigenvector grows with the square root of the node's degree, which varies by orders of magnitude.
    Rows of length 1 describe the position of a node in the graph and not its degree. A node without edges has a row of
    zeros.
    """
    generator = torch.Generator().manual_seed(seed)
    operator, degree = _normalized(edge_index, num_nodes)
    columns = min(channels + SPARE_COLUMNS, num_nodes)
    basis = torch.randn(num_nodes, columns, generator=generator)
    for step in range(STEPS):
        if step % STEPS_PER_BASIS == 0:
            basis = _orthogonal(basis)
        basis = torch.add(basis, operator @ basis).mul_(0.5)
    basis = _orthogonal(basis)
    image = operator @ basis
    with limit_threads(1):
        # the eigenvectors within the subspace, largest eigenvalue first
        vectors = torch.linalg.eigh((basis.T @ image).double())[1].flip(1)
        x = basis @ vectors[:, :channels].float()
    x *= (degree > 0)[:, None] / x.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return torch.nn.functional.pad(x, (0, channels - x.size(1)))


def _orthogonal(basis: Tensor) -> Tensor:
    """Returns an orthonormal basis `[M, D]` of the columns, the same for any number of threads."""
    with limit_threads(1):
        return torch.linalg.qr(basis)[0]


def _normalized(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Returns `S` `[M, M]` in CSR, and the degrees `[M]`."""
    row, col = pyg_utils.to_undirected(pyg_utils.remove_self_loops(edge_index)[0], num_nodes=num_nodes)
    degree = torch.bincount(row, minlength=num_nodes)
    scale = (degree + degree.float().mean().clamp(min=1)).rsqrt()
    pointer = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    with warnings.catch_warnings():
        # of the beta state of CSR and, in some versions of PyTorch, although `check_invariants` is given, of that
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks are)")
        operator = torch.sparse_csr_tensor(
            pointer, col, scale[row] * scale[col], (num_nodes, num_nodes), check_invariants=False
        )
    return operator, degree
