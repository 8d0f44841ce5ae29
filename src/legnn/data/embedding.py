"""Features computed from the edges alone, for node types without any or for all nodes: labels are not used."""

import warnings
from collections import deque
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor
from torch_geometric.nn import MetaPath2Vec
from torch_geometric.utils import remove_self_loops, to_undirected

from legnn.config.data import MissingFeatures
from legnn.data.cache import cached, digest_of
from legnn.data.node_types import Relation, TypedEdges
from legnn.data.raw_graph import RawGraph
from legnn.data.validation import check_edges, check_nodes
from legnn.errors import InputError, plural

SEED = 0
SPARE_COLUMNS = 16
"""Additional columns: the last eigenvectors of a subspace are the least exact."""
STEPS, STEPS_PER_BASIS = 15, 5
"""Products with the adjacency, and the number of them between two orthogonalizations."""

WALK_CYCLES, CONTEXT, WALKS_PER_NODE, EPOCHS, BATCH, LEARNING_RATE = 2, 5, 1, 4, 256, 0.01
"""Of metapath2vec: rounds of a walk along the meta-path, distance of two nodes in one context, and the usual rest."""


def embed(
    edges: TypedEdges, missing: list[str], start: str, method: MissingFeatures, channels: int
) -> dict[str, Tensor]:
    """Returns features `[n, channels]` for each type of `missing`, computed once and kept in the user's cache.

    Walks start from nodes of the type `start`, the labeled one.
    """
    sizes = (f"{name} {size}" for name, size in edges.sizes.items())
    relations = (part for relation, index in edges.relations.items() for part in ("__".join(relation), index))

    def compute() -> Tensor:
        if method == "spectral":
            x = spectral(edges.edge_index(), edges.num_nodes, channels, SEED)
        else:
            x = metapath2vec(edges, missing, start, channels, SEED)
        return torch.cat([x[edges.rows[name]] for name in missing])

    rows = cached([f"{method} {channels} {SEED} {start}", *missing, *sizes, *relations], compute)
    return dict(zip(missing, rows.split([edges.sizes[name] for name in missing]), strict=True))


def with_spectral_features(graph: RawGraph, channels: int) -> RawGraph:
    """Returns the graph with `channels` features of every node, of all types, computed from its edges.

    They are kept in the user's cache. Features that the graph has are left aside.
    """
    check_nodes(graph)
    check_edges(graph)
    method, nodes, types = f"spectral {channels} {SEED}", len(graph.x), graph.node_types
    x = cached([f"{method} {nodes}", graph.edge_index], lambda: spectral(graph.edge_index, nodes, channels, SEED))
    note = (
        f"The {plural(channels, 'feature')} of every node {'was' if channels == 1 else 'were'} computed from the graph "
        f"alone (`features=spectral`); those of the data are left aside, so no figure is comparable with published "
        f"ones."
    )
    columns = [str(column) for column in range(channels)]
    return replace(
        graph,
        x=x,
        feature_names=None,
        text_features=None,
        node_types=types and replace(types, columns=[columns] * len(types.names)),
        computed_features=["nodes"] if types is None else types.names,
        feature_digest=digest_of([method]),  # the edges are in the fingerprint of the graph
        notes=[*graph.notes, note],
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
            basis = torch.linalg.qr(basis)[0]
        basis = torch.add(basis, operator @ basis).mul_(0.5)
    basis = torch.linalg.qr(basis)[0]
    # the eigenvectors within the subspace, largest eigenvalue first
    vectors = torch.linalg.eigh((basis.T @ (operator @ basis)).double())[1].flip(1)
    x = basis @ vectors[:, :channels].float()
    x *= (degree > 0)[:, None] / x.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return torch.nn.functional.pad(x, (0, channels - x.size(1)))


def _normalized(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Returns `S` `[M, M]` in CSR, and the degrees `[M]`."""
    row, col = to_undirected(remove_self_loops(edge_index)[0], num_nodes=num_nodes)
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


def metapath2vec(edges: TypedEdges, missing: list[str], start: str, channels: int, seed: int) -> Tensor:
    """Returns PyG's metapath2vec embedding `[M, channels]`: nodes that are close on random walks have similar rows.

    Walks follow `meta_path`. Rows of types that it does not visit, and of nodes without edges, are zero.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    between = {_relation(*pair): index for pair, index in edges.between().items()}
    path = meta_path(edges, missing, start)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        model = MetaPath2Vec(
            {relation: between[relation] for relation in path},
            embedding_dim=channels,
            metapath=path,
            walk_length=WALK_CYCLES * len(path),
            context_size=min(CONTEXT, WALK_CYCLES * len(path) + 1),
            walks_per_node=WALKS_PER_NODE,
            num_nodes_dict=edges.sizes,
            sparse=True,
        ).to(device)
        optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=LEARNING_RATE)
        for _ in range(EPOCHS):
            for near, random in model.loader(batch_size=BATCH, shuffle=True):
                optimizer.zero_grad()
                model.loss(near.to(device), random.to(device)).backward()
                optimizer.step()
    x = torch.zeros(edges.num_nodes, channels)
    for name in model.start:
        x[edges.rows[name]] = model(name).detach().cpu()
    reached = torch.zeros(edges.num_nodes, dtype=torch.bool)
    for source, _, target in path:
        for kind, end in zip((source, target), between[_relation(source, target)], strict=True):
            reached[edges.rows[kind]][end] = True
    return x * reached[:, None]


def meta_path(edges: TypedEdges, missing: list[str], start: str) -> list[Relation]:
    """Returns round trips from `start` to each type of `missing` and back along the same path, one after the other.

    Paths are the shortest along relations in either direction. Types with many edges come first: a walk ends at a node
    without a next edge, and the rest of the meta-path is not visited.
    """
    paths = _paths_from(edges, start)
    others = [name for name in missing if name != start]
    unreached = next((name for name in others if name not in paths), None)
    if unreached is not None:
        raise InputError(
            f"no relation joins the type {unreached!r} to {start!r}, so metapath2vec cannot reach it; "
            f"give it features, or choose missing_features = spectral"
        )
    counts = {pair: index.size(1) for pair, index in edges.between().items()}
    others.sort(key=lambda name: (len(paths[name]), -counts[paths[name][-2], name]))
    if not others:  # only `start` has no features: any step away and back visits it
        away = next((target for source, target in counts if source == start), None)
        if away is None:
            raise InputError(f"the type {start!r} has neither features nor edges to make them of; give it features")
        others, paths[away] = [away], [start, away]
    trips = [[*paths[name], *paths[name][-2::-1]] for name in others]
    return [_relation(*pair) for trip in trips for pair in pairwise(trip)]


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
