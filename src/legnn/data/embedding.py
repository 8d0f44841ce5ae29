"""Features computed from the edges alone, for node types without any or for all nodes: labels are not used."""

import warnings
from dataclasses import replace

import torch
from torch import Tensor

from legnn.config.data import Features, MissingFeatures
from legnn.data.cache import cached, digest_of
from legnn.data.metapath import all_trips, published_trip, trips
from legnn.data.node_types import NodeTypes, Relation, TypedEdges
from legnn.data.raw_graph import RawGraph
from legnn.data.validation import check_edges, check_nodes
from legnn.errors import InputError, plural
from legnn.lazy import lazy_module
from legnn.ops.runtime.threads import limit_threads

pyg_utils = lazy_module("torch_geometric.utils")

SEED = 0
SPARE_COLUMNS = 16
"""Additional columns: the last eigenvectors of a subspace are the least exact."""
WALKS = "skip-gram 1"
"""Names how walks become features: to be changed with it, so that nobody gets what another way left in the cache."""
STEPS, STEPS_PER_BASIS = 15, 5
"""Products with the adjacency, and the number of them between two orthogonalizations."""


def embed(
    edges: TypedEdges, missing: list[str], start: str, method: MissingFeatures, channels: int
) -> dict[str, Tensor]:
    """Returns features `[n, channels]` for each type of `missing`, computed once and kept in the user's cache.

    Walks start from nodes of the type `start`, the labeled one; the published ones from authors.
    """
    sizes = (f"{name} {size}" for name, size in edges.sizes.items())
    relations = (part for relation, index in edges.relations.items() for part in ("__".join(relation), index))

    def compute() -> Tensor:
        if method == "spectral":
            x = spectral(edges.edge_index(), edges.num_nodes, channels, SEED)
        else:
            x = _walk(
                edges, [published_trip(edges)] if method == "published" else trips(edges, missing, start), channels
            )
        return torch.cat([x[edges.rows[name]] for name in missing])

    how = method if method == "spectral" else f"{method} {WALKS}"
    rows = cached([f"{how} {channels} {SEED} {start}", *missing, *sizes, *relations], compute)
    return dict(zip(missing, rows.split([edges.sizes[name] for name in missing]), strict=True))


def with_computed_features(graph: RawGraph, method: Features, channels: int) -> RawGraph:
    """Returns the graph with `channels` features of every node, of all types, computed from its edges.

    They are kept in the user's cache. Features that the graph has are left aside. Raises `InputError` for walks between
    types on a graph with one.
    """
    check_nodes(graph)
    check_edges(graph)
    how, types = f"{method} {channels} {SEED}", graph.node_types
    if method == "metapath2vec":
        x = _from_walks(graph, how, channels)
    else:
        nodes = len(graph.x)
        x = cached([f"{how} {nodes}", graph.edge_index], lambda: spectral(graph.edge_index, nodes, channels, SEED))
    note = (
        f"The {plural(channels, 'feature')} of every node {'was' if channels == 1 else 'were'} computed from the graph "
        f"alone (`features={method}`); those of the data are left aside, so no figure is comparable with published "
        f"ones."
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
        notes=[*graph.notes, note],
    )


def with_default_features(graph: RawGraph, channels: int) -> RawGraph:
    """Returns a graph that has no features with `spectral` ones, and the logarithm of each node's degree."""
    check_nodes(graph)
    check_edges(graph)
    nodes = len(graph.x)
    # eigenvectors are as many as nodes
    width = min(channels, nodes)
    x = cached(
        [f"spectral {width} {SEED} {nodes}", graph.edge_index], lambda: spectral(graph.edge_index, nodes, width, SEED)
    )
    degree = torch.bincount(graph.edge_index.flatten(), minlength=nodes)
    note = (
        f"{graph.name} has no features: {plural(width, 'eigenvector')} of its graph and the degree of each node take "
        f"their place, and the run can predict this graph alone."
    )
    return replace(
        graph,
        x=torch.cat([x, degree.float().log1p()[:, None]], 1),
        computed_features=["nodes"],
        feature_digest=digest_of([f"spectral {width} {SEED} degree"]),
        notes=[*graph.notes, note],
    )


def _from_walks(graph: RawGraph, how: str, channels: int) -> Tensor:
    """Returns metapath2vec's features `[M, channels]` of all types, by walks from the target to every other type."""
    types = graph.node_types
    if types is None:
        raise InputError(
            f"`features=metapath2vec` walks between node types, and {graph.name} has one; choose `features=spectral`"
        )
    edges, order = _by_type(graph.edge_index, types)

    def compute() -> Tensor:
        return _walk(edges, all_trips(edges, types.target), channels)[order.argsort()]

    return cached([how, WALKS, *types.names, types.target, types.node_type, graph.edge_index], compute)


def _walk(edges: TypedEdges, trips: list[list[Relation]], channels: int) -> Tensor:
    # not every command needs numba, which takes a moment to import
    from legnn.data.skip_gram import embed_walks

    return embed_walks(edges, trips, channels, SEED)


def _by_type(edge_index: Tensor, types: NodeTypes) -> tuple[TypedEdges, Tensor]:
    """Returns the edges between each pair of types, and the nodes `[M]` in the order of their types."""
    sizes = torch.bincount(types.node_type, minlength=len(types.names))
    order = types.node_type.argsort(stable=True)
    within = order.argsort() - (sizes.cumsum(0) - sizes)[types.node_type]
    source, target = types.node_type[edge_index]
    relations = {}
    for pair in torch.unique(source * len(types.names) + target).tolist():
        ends = divmod(pair, len(types.names))
        mine = (source == ends[0]) & (target == ends[1])
        relations[types.names[ends[0]], "to", types.names[ends[1]]] = within[edge_index[:, mine]]
    return TypedEdges(dict(zip(types.names, sizes.tolist(), strict=True)), relations), order


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
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        # some versions of PyTorch warn although `check_invariants` is given
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        operator = torch.sparse_csr_tensor(
            pointer, col, scale[row] * scale[col], (num_nodes, num_nodes), check_invariants=False
        )
    return operator, degree
