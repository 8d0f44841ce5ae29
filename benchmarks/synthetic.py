"""Graphs to measure on: synthetic ones with ogbn-arxiv's degree skew, or a data set of the library."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

import legnn
from legnn.data import GraphData

SEED = 0
TRAIN, VAL = 0.54, 0.18
"""Parts of the nodes, as in ogbn-arxiv."""

# how many of ogbn-arxiv's nodes have at least so many neighbors, both directions of a citation counted once
RARITY = (
    *((1.0, 1), (0.9, 1), (0.8, 2), (0.7, 3), (0.6, 5), (0.5, 6), (0.4, 9), (0.3, 12), (0.2, 17), (0.1, 27)),
    *((5e-2, 40), (2e-2, 67), (1e-2, 106), (5e-3, 162), (2e-3, 302), (1e-3, 492), (5e-4, 809), (2e-4, 1301)),
    *((1e-4, 2180), (5e-5, 3594), (1e-5, 10265), (1 / 169_343, 13161)),
)


@dataclass(frozen=True, kw_only=True)
class Size:
    """A synthetic graph, and how wide the model on it is."""

    nodes: int
    edges: int
    """Both directions counted, before the library's default preparation adds a self-loop to every node."""
    classes: int
    channels: int = 540
    """`D`."""
    heads: int = 3
    """Of GAT; `D` is their total."""
    features: int = 128


SIZES = {
    # 122,517 edges once the self-loops are there
    "small": Size(nodes=8_467, edges=122_517 - 8_467, classes=40),
    "arxiv": Size(nodes=169_343, edges=2_315_598, classes=40),
    "mag": Size(nodes=1_939_743, edges=42_222_014, classes=349, channels=512, heads=8),
    "cora": Size(nodes=2_708, edges=10_556, classes=7),
    # for the tests: nothing can be read off its times
    "tiny": Size(nodes=300, edges=1_600, classes=5, channels=12, features=8),
}
TRAINED = {"mag": 629_571}
"""Training nodes of the data set a size is named after, where batches of them are measured."""
CHANNELS, HEADS = 540, 3
"""On a data set of the library."""


@dataclass(frozen=True)
class Workload:
    """A graph in the library's form, on the CPU, and the width of the models that run on it."""

    name: str
    data: GraphData
    channels: int
    heads: int

    @property
    def nodes(self) -> int:
        return self.data.num_nodes

    @property
    def edges(self) -> int:
        """Self-loops included: what messages travel on."""
        return self.data.num_edges

    @property
    def features(self) -> int:
        return self.data.num_features

    @cached_property
    def entries(self) -> int:
        """Features that are not zero."""
        return int(torch.count_nonzero(self.data.x))

    @property
    def classes(self) -> int:
        return self.data.num_classes

    @property
    def train(self) -> int:
        return int(self.data.train_mask.sum())


def workload(name: str) -> Workload:
    """A size of `SIZES`, or any other name as `legnn.load` knows it; `data:cora` is the real Cora, not its size."""
    if name in SIZES:
        return Workload(name, synthetic_data(SIZES[name]), SIZES[name].channels, SIZES[name].heads)
    data = legnn.load(name.removeprefix("data:"))
    # PyG's SAGEConv and GATConv take no weights, so ours gets none either
    data = replace(data, adjacency=replace(data.adjacency, weight=None))
    return Workload(name, data, CHANNELS, HEADS)


def synthetic_data(size: Size, seed: int = SEED) -> GraphData:
    """Random features, labels and splits over `skewed_graph`, as `legnn.load` returns it."""
    generator = torch.Generator().manual_seed(seed)
    # a few large classes and many small ones, about as uneven as ogbn-arxiv's: sums within classes are then no easier
    share = 1.0 / torch.arange(3, size.classes + 3)
    draw = torch.rand(size.nodes, generator=generator)
    data = Data(
        x=torch.randn(size.nodes, size.features, generator=generator),
        y=torch.multinomial(share, size.nodes, replacement=True, generator=generator),
        edge_index=skewed_graph(size.nodes, size.edges, seed),
        train_mask=draw < TRAIN,
        val_mask=(draw >= TRAIN) & (draw < TRAIN + VAL),
        test_mask=draw >= TRAIN + VAL,
        class_names=list(range(size.classes)),
        name="synthetic",
    )
    # both directions of every edge are there already, once
    return GraphData.from_pyg(data, training=False, undirected=False, remove_duplicates=False)


def skewed_graph(nodes: int, edges: int, seed: int = SEED) -> Tensor:
    """Returns a symmetric `edge_index` `[2, edges]` without self-loops or duplicates, with ogbn-arxiv's degree skew.

    Every node gets as many half-edges as it has neighbors, and they are joined at random. A loop or a duplicate is
    replaced, so that there are exactly `edges` edges, both directions counted.
    """
    if edges % 2 or not nodes <= edges <= nodes * (nodes - 1) // 2:
        raise ValueError(f"{edges:,} edges cannot be both directions of a sparse graph of {nodes:,} nodes")
    rng = np.random.default_rng(seed)
    degree = rng.permutation(_degrees(nodes, edges))
    ends = rng.permutation(np.repeat(np.arange(nodes, dtype=np.int32), degree))
    joined = _distinct(nodes, ends[: edges // 2], ends[edges // 2 :])
    added = np.empty(0, dtype=np.int64)
    largest_first = np.argsort(-degree, kind="stable")
    lacking = degree - _degrees_of(joined, nodes)
    while missing := edges // 2 - len(joined) - len(added):
        # nearly all duplicates are between the largest nodes: they get other neighbors, from anywhere
        short = np.repeat(largest_first, lacking.clip(min=0)[largest_first])[:missing]
        more = _distinct(nodes, short, rng.integers(0, nodes, missing))
        known = joined[np.searchsorted(joined, more).clip(max=len(joined) - 1)] == more
        more = more[~known & ~np.isin(more, added)]
        lacking -= _degrees_of(more, nodes)
        added = np.concatenate([added, more])
    pairs = np.concatenate([joined, added])
    low, high = np.divmod(pairs, nodes)
    both = np.sort(np.concatenate([pairs, high * nodes + low]))
    return torch.from_numpy(np.stack(np.divmod(both, nodes)))


def _degrees(nodes: int, edges: int) -> np.ndarray:
    """`[nodes]` descending, each at least 1, together `edges`: ogbn-arxiv's quantiles, scaled to the mean asked for."""
    rarity, quantile = np.log(np.array(RARITY[::-1])).T
    at = np.log((np.arange(nodes) + 1) / nodes)
    # beyond ogbn-arxiv's own largest degree its tail goes on as the power law it is, from one node in 10,000 up
    steep = (quantile[0] - np.log(2180)) / (rarity[0] - np.log(1e-4))
    wanted = np.exp(np.where(at < rarity[0], quantile[0] + steep * (at - rarity[0]), np.interp(at, rarity, quantile)))
    most = nodes - 1
    low, high = 0.0, edges / nodes
    for _ in range(50):
        scale = (low + high) / 2
        low, high = (scale, high) if np.clip(scale * wanted, 1, most).sum() < edges else (low, scale)
    # rounding the running total, not each degree, makes the sum come out
    total = np.rint(np.cumsum(np.clip(high * wanted, 1, most))).astype(np.int64)
    total[-1] = edges
    return np.diff(total, prepend=0)


def _distinct(nodes: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pairs of different nodes as `low · nodes + high`, ascending, each once."""
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
    keys = np.sort((low * nodes + high)[low != high])
    return keys[np.diff(keys, prepend=-1) != 0]


def _degrees_of(pairs: np.ndarray, nodes: int) -> np.ndarray:
    low, high = np.divmod(pairs, nodes)
    return np.bincount(low, minlength=nodes) + np.bincount(high, minlength=nodes)
