"""Skip-gram with negative sampling (Mikolov et al., 2013) on random walks, as metapath2vec's authors train it.

One numba kernel on one thread: PyG's `MetaPath2Vec` takes a hundred times as long on a CPU.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from legnn.data.node_types import EdgesByTypes, NodeTypes
from legnn.ops.csr.build import coo_to_csr
from legnn.ops.runtime.jit import kernel

LENGTH = 40
"""Steps of a walk."""
WINDOW, NEGATIVES = 5, 5
"""Nodes on each side of a node that are drawn near to it, and random nodes for each that are pushed away."""
RATE = 0.025
"""Learning rate at the beginning; it falls to zero."""
MOST_VISITS = 10_000_000
"""Nodes of all walks together: some two minutes, whatever the size of the graph."""
MOST_WALKS = 80
"""Walks from each node, on a small graph."""
FREQUENCY_POWER = 0.75
"""Nodes are drawn as negatives by how often walks visit them, to this power."""


def embed_walks(types: NodeTypes, edges: EdgesByTypes, trips: list[list[str]], channels: int, seed: int) -> Tensor:
    """Returns `[M, channels]`: nodes that are near each other on walks along the round trips have similar rows.

    Rows of nodes that no walk visits are zero.
    """
    random, nodes = np.random.default_rng(seed), len(types.node_type)
    walks = draw_walks(types, edges, trips, random)
    visits = np.bincount(walks[walks >= 0], minlength=nodes)
    total = np.cumsum(visits**FREQUENCY_POWER)
    # a table to draw from, as word2vec's
    table = np.searchsorted(total, (np.arange(1 << 20) + 0.5) / (1 << 20) * total[-1]).astype(np.int32)
    x = ((random.random((nodes, channels), np.float32) - 0.5) / channels).astype(np.float32)
    skip_gram(random.permutation(walks), x, np.zeros_like(x), table, np.float32(RATE), np.uint64(seed + 1))
    return torch.from_numpy(x * (visits > 0)[:, None])


def draw_walks(
    types: NodeTypes, edges: EdgesByTypes, trips: list[list[str]], random: np.random.Generator
) -> np.ndarray:
    """Returns walks `[W, LENGTH + 1]` of nodes, -1 after their end, each along one of the trips again and again."""
    M = len(types.node_type)
    start = np.flatnonzero(types.node_type.numpy() == types.names.index(trips[0][0]))
    per_trip = MOST_VISITS // max(len(start) * LENGTH * len(trips), 1)
    parts = []
    for trip in trips:
        node = np.repeat(start, min(max(per_trip, 1), MOST_WALKS))
        walks = np.full((len(node), LENGTH + 1), -1, np.int32)
        walks[:, 0] = node
        pairs = [edges[pair].numpy() for pair in pairwise(trip)]
        steps = [coo_to_csr(source, target, None, M, M) for source, target in pairs]
        for step in range(LENGTH):
            rows = steps[step % len(steps)]
            first = rows.rowptr[node]
            degree = rows.rowptr[node + 1] - first
            drawn = first + (random.random(len(node)) * degree).astype(np.int64)
            # a walk ends at a node without a next edge, and stays ended
            is_open = (degree > 0) & (walks[:, step] >= 0)
            node = np.where(is_open, rows.col[np.minimum(drawn, len(rows.col) - 1)], node)
            walks[:, step + 1] = np.where(is_open, node, -1)
        parts.append(walks[walks[:, 1] >= 0])
    return np.concatenate(parts)


@kernel
def skip_gram(walks, x, context, table, rate, state):
    """Takes a step of gradient descent on `x` and `context` `[M, D]` for each pair of nodes within a window.

    The loss of a pair is `-log σ(x_i · c_j) - Σ_k log σ(-x_i · c_k)`, over negatives `k` from `table`.
    """
    columns = x.shape[1]
    change = np.empty(columns, np.float32)
    for w in range(walks.shape[0]):
        step = rate * np.float32(1 - w / walks.shape[0])
        walk = walks[w]
        for a in range(walk.size):
            if walk[a] < 0:
                break
            row = x[walk[a]]
            for b in range(max(a - WINDOW, 0), min(a + WINDOW + 1, walk.size)):
                if b == a or walk[b] < 0:
                    continue
                change[:] = 0
                for k in range(NEGATIVES + 1):
                    other = walk[b]
                    if k > 0:
                        # the next random word (xorshift)
                        state ^= state << np.uint64(13)
                        state ^= state >> np.uint64(7)
                        state ^= state << np.uint64(17)
                        other = table[(state >> np.uint64(16)) % np.uint64(table.size)]
                        if other == walk[b]:
                            continue
                    near = context[other]
                    total = np.float32(0)
                    for c in range(columns):
                        total += row[c] * near[c]
                    slope = step * (np.float32(k == 0) - np.float32(1) / (np.float32(1) + np.exp(-total)))
                    for c in range(columns):
                        change[c] += slope * near[c]
                        near[c] += slope * row[c]
                for c in range(columns):
                    row[c] += change[c]
