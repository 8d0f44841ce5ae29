"""The labels around each node, which a reader of a check sees beside a node's own."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from legnn.data import GraphData


def count_neighbor_labels(graph: GraphData) -> np.ndarray:
    """`[M, C]` the (weighted) number of neighbors with each given label; a node is no neighbor of its own."""
    own, y = graph.adjacency, graph.y.numpy()
    row, col = own.row.numpy(), own.col.numpy()
    weight = np.ones(len(col)) if own.weight is None else own.weight.double().numpy()
    kept = row != col
    adjacency = csr_array((weight[kept], (row[kept], col[kept])), shape=(graph.num_nodes, graph.num_nodes))
    labeled = np.flatnonzero(y >= 0)
    labels = csr_array((np.ones(len(labeled)), (labeled, y[labeled])), shape=(graph.num_nodes, graph.num_classes))
    return np.asarray((adjacency @ labels).toarray())
