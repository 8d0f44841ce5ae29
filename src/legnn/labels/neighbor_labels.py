"""Labels of the neighbors of each node, shown next to a suspicious label."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from legnn.data import GraphData


def count_neighbor_labels(graph: GraphData) -> np.ndarray:
    """`[M, C]` the (weighted) number of neighbors with each given label; a node is no neighbor of itself."""
    adjacency, y = graph.adjacency, graph.y.numpy()
    row, col = adjacency.row.numpy(), adjacency.col.numpy()
    weight = np.ones(len(col)) if adjacency.weight is None else adjacency.weight.double().numpy()
    others = row != col
    edges = csr_array((weight[others], (row[others], col[others])), shape=(graph.num_nodes, graph.num_nodes))
    labeled = np.flatnonzero(y >= 0)
    labels = csr_array((np.ones(len(labeled)), (labeled, y[labeled])), shape=(graph.num_nodes, graph.num_classes))
    return np.asarray((edges @ labels).toarray())
