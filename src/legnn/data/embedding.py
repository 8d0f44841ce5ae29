"""Features computed from the edges alone, for node types without any or for all nodes: labels are not used."""

import warnings
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.utils import remove_self_loops, to_undirected

from legnn.config.data import MissingFeatures
from legnn.data.cache import cached, digest_of
from legnn.data.metapath import metapath2vec, published_walks, round_trips
from legnn.data.node_types import TypedEdges
from legnn.data.raw_graph import RawGraph
from legnn.data.validation import check_edges, check_nodes
from legnn.errors import plural

SEED = 0
SPARE_COLUMNS = 16
"""Additional columns: the last eigenvectors of a subspace are the least exact."""
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
            walks = published_walks(edges) if method == "published" else round_trips(edges, missing, start)
            x = metapath2vec(edges, walks, channels, SEED)
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
