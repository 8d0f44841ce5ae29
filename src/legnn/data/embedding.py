"""Features for node types that come with none, computed from the edges alone: no label is ever looked at."""

import warnings
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor
from torch_geometric.nn import MetaPath2Vec
from torch_geometric.utils import remove_self_loops, to_undirected

from legnn.config.data import MissingFeatures
from legnn.data.typed_edges import Relation, TypedEdges
from legnn.errors import InputError
from legnn.io.cache import cached

SEED = 0
SPARE_COLUMNS = 16
"""Columns beyond those asked for: the last eigenvectors of a subspace are the least exact."""
STEPS, STEPS_PER_BASIS = 15, 5
"""Products with the adjacency, and after how many of them the columns are made orthogonal again."""

WALK_CYCLES, CONTEXT, WALKS_PER_NODE, EPOCHS, BATCH, LEARNING_RATE = 2, 5, 1, 4, 256, 0.01
"""Of metapath2vec: how often a walk goes round the meta-path, how far apart two nodes may be and still be drawn to each
other, and the usual rest."""


def embed(
    edges: TypedEdges, missing: list[str], start: str, method: MissingFeatures, channels: int
) -> dict[str, Tensor]:
    """Features `[n, channels]` for each of the types `missing`, computed once and kept in the user's cache.

    Args:
        edges: the graph.
        missing: types without features.
        start: the type that walks start from, the labeled one.
        method: how.
        channels: features of each node.
    """
    methods: dict[str, Callable[[], Tensor]] = {
        "spectral": lambda: spectral(edges.edge_index(), edges.num_nodes, channels, SEED),
        "metapath2vec": lambda: metapath2vec(edges, missing, start, channels, SEED),
    }
    words = [f"{method} {channels} {SEED} {start}", *missing, *(f"{name} {size}" for name, size in edges.sizes.items())]
    relations = [part for relation, index in edges.relations.items() for part in ("__".join(relation), index)]

    def compute() -> Tensor:
        x = methods[method]()
        return torch.cat([x[edges.starts[name] :][: edges.sizes[name]] for name in missing])

    rows = cached([*words, *relations], compute)
    return dict(zip(missing, rows.split([edges.sizes[name] for name in missing]), strict=True))


def spectral(edge_index: Tensor, num_nodes: int, channels: int, seed: int) -> Tensor:
    """Leading eigenvectors of the normalized adjacency, a row of length 1 for each node, `[M, channels]`.

    `S = D_τ^{-1/2} A D_τ^{-1/2}` with `A` undirected and unweighted, and `D_τ = D + τ I`, `τ` the mean degree: without
    `τ` every tiny component would have an eigenvector of its own, as large as that of the whole graph. The subspace of
    the largest eigenvalues is found by products of `(S + I) / 2` with random columns, which keeps out the negative end
    of the spectrum: on a graph of two sides that is the positive end once more, with a sign.

    An entry of an eigenvector grows with the square root of the node's degree, which spans orders of magnitude between
    a rare node and a hub. Rows are therefore scaled to length 1: what is left says where in the graph a node is, not
    how many edges it has. A node without edges has a row of zeros.
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
    """`S` `[M, M]` in compressed rows, and the degrees `[M]`."""
    row, col = to_undirected(remove_self_loops(edge_index)[0], num_nodes=num_nodes)
    degree = torch.bincount(row, minlength=num_nodes)
    scale = (degree + degree.float().mean().clamp(min=1)).rsqrt()
    pointer = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        # said by some versions of PyTorch even to those who opted out
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        operator = torch.sparse_csr_tensor(
            pointer, col, scale[row] * scale[col], (num_nodes, num_nodes), check_invariants=False
        )
    return operator, degree


def metapath2vec(edges: TypedEdges, missing: list[str], start: str, channels: int, seed: int) -> Tensor:
    """PyG's metapath2vec, `[M, channels]`: nodes that random walks meet close to each other have similar rows.

    Walks follow `meta_path`. Rows of types it does not visit, and of nodes without edges, are zero.
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
        x[edges.starts[name] :][: edges.sizes[name]] = model(name).detach().cpu()
    reached = torch.zeros(edges.num_nodes, dtype=torch.bool)
    for source, _, target in path:
        ends = between[_relation(source, target)]
        reached[ends[0] + edges.starts[source]] = True
        reached[ends[1] + edges.starts[target]] = True
    return x * reached[:, None]


def meta_path(edges: TypedEdges, missing: list[str], start: str) -> list[Relation]:
    """A round trip from `start` to each type of `missing` and back by the same way, one after the other.

    The way is the shortest along relations in either direction. Types with many edges come first: a walk ends where a
    node has no edge to go on along, and what follows is lost.
    """
    ways = _ways_from(edges, start)
    others = [name for name in missing if name != start]
    unreached = next((name for name in others if name not in ways), None)
    if unreached is not None:
        raise InputError(
            f"no relation joins the type {unreached!r} to {start!r}, so metapath2vec cannot reach it; "
            f"give it features, or choose missing_features = spectral"
        )
    counts = {pair: index.size(1) for pair, index in edges.between().items()}
    others.sort(key=lambda name: (len(ways[name]), -counts[ways[name][-2], name]))
    if not others:  # only the type the walks start from has no features: any step away and back visits it
        away = next((target for source, target in counts if source == start), None)
        if away is None:
            raise InputError(f"the type {start!r} has neither features nor edges to make them of; give it features")
        others, ways[away] = [away], [start, away]
    trips = [[*ways[name], *ways[name][-2::-1]] for name in others]
    return [_relation(*pair) for trip in trips for pair in pairwise(trip)]


def _ways_from(edges: TypedEdges, start: str) -> dict[str, list[str]]:
    """The shortest way of types from `start` to every type there is one to, both ends included."""
    pairs = list(edges.between())
    ways, queue = {start: [start]}, deque([start])
    while queue:
        here = queue.popleft()
        for source, target in pairs:
            if source == here and target not in ways:
                ways[target] = [*ways[here], target]
                queue.append(target)
    return ways


def _relation(source: str, target: str) -> Relation:
    return source, "to", target
