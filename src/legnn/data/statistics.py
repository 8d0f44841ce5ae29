"""The columns of the paper's table of data sets."""

from typing import NamedTuple

from torch import Tensor
from torch_geometric.data import Data

CHUNK = 1 << 22
"""Edges that are looked at together: their classes are copies, which should not be as large as the graph."""


class Statistics(NamedTuple):
    """What a graph is like, as it was read: before reverse edges and self-loops were added.

    Of several node types, splits are parts of the labeled one, and homophily is over the edges among its nodes.
    """

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    labeled: int
    train_percent: float
    val_percent: float
    test_percent: float
    homophily: float


def statistics(data: Data) -> Statistics:
    """Size, split and homophily of a graph that `load` returned."""
    nodes = data.x.shape[0]
    targets = nodes if data.get("target_mask") is None else int(data.target_mask.sum())

    def percent(mask: Tensor) -> float:
        return 100 * int(mask.sum()) / targets

    return Statistics(
        name=data.name,
        nodes=nodes,
        edges=data.raw_edges,
        features=data.x.shape[1],
        classes=len(data.class_names),
        labeled=int((data.y >= 0).sum()),
        train_percent=percent(data.train_mask),
        val_percent=percent(data.val_mask),
        test_percent=percent(data.test_mask),
        homophily=data.homophily,
    )


def edge_count(data: Data) -> int:
    """How many edges messages travel on, in either form of a loaded graph."""
    return int((data.edge_index[0] if data.get("col") is None else data.col).numel())


def edge_homophily(edge_index: Tensor, y: Tensor) -> float:
    """Fraction of edges whose ends share a class, over the edges with both ends labeled; NaN if there are none.

    Args:
        edge_index: int64 [2, E].
        y: int64 [M], -1 is unlabeled.
    """
    labeled, alike = 0, 0
    for source, target in zip(edge_index[0].split(CHUNK), edge_index[1].split(CHUNK), strict=True):
        of_source, of_target = y[source], y[target]
        both_labeled = (of_source >= 0) & (of_target >= 0)
        labeled += int(both_labeled.sum())
        alike += int((both_labeled & (of_source == of_target)).sum())
    return alike / labeled if labeled else float("nan")
