"""Labels in the edges: edges of test nodes that are far more alike than others, and neighbors that tell the class."""

from __future__ import annotations

import math

import numpy as np

from legnn.errors import plural
from legnn.labels.audit.columns import TELLS
from legnn.labels.audit.findings import Check, Finding
from legnn.labels.audit.rules import LEAST_NODES
from legnn.labels.audit.subject import Subject

LEAST_EDGES = 100
"""Fewer edges between nodes of two splits say nothing of them."""
ODDS, DEVIATIONS = 3.0, 6.0
"""The odds that ends share a class are no chance if they are this many times, and deviations, above those elsewhere."""
MOST_TOLD = 0.5
"""The share of test nodes whose class a neighbor tells from which it is a leak."""

HOMOPHILY = Check(
    "edges made of test labels", "compare how often ends share a class: two test nodes, one test node, and none"
)
NEIGHBORS = Check("neighbors that tell the class", "look for a node whose neighbors are the test nodes of one class")


def check_homophily(subject: Subject) -> Finding:
    """Returns whether edges at test nodes connect nodes of the same class far more often than others."""
    graph, y = subject.graph, subject.y
    in_split = (graph.train_mask | graph.val_mask | graph.test_mask).numpy() & (y >= 0)
    row, col = graph.adjacency.row.numpy(), graph.adjacency.col.numpy()
    compared = in_split[row] & in_split[col] & (row != col)
    row, col = row[compared], col[compared]
    test = graph.test_mask.numpy()
    tests = test[row].astype(int) + test[col]
    counts = [(int((y[row] == y[col])[tests == k].sum()), int((tests == k).sum())) for k in (0, 1, 2)]
    # where training and validation nodes are few, edges from them to test nodes are what others are compared with
    base = next((k for k in (0, 1) if counts[k][1] >= LEAST_EDGES), 2)
    if base == 2 or max(number for _, number in counts[base + 1 :]) < LEAST_EDGES:
        return HOMOPHILY.skip(f"fewer than {LEAST_EDGES} edges are between such nodes")
    alike, others = counts[base]
    leaks = []
    for k, words in ((1, "one test node and another"), (2, "two test nodes")):
        same, number = counts[k]
        if k > base and number >= LEAST_EDGES and _is_far_above(same, number, alike, others):
            leaks.append(f"{same / number:.0%} of edges between {words} share a class, elsewhere {alike / others:.0%}")
    shares = " / ".join(f"{same / number:.0%}" if number else "none" for same, number in reversed(counts))
    return HOMOPHILY.conclude(len(row), leaks=leaks, clean=f"{shares} share a class")


def check_neighbors(subject: Subject) -> Finding:
    """Returns whether one neighbor tells the class of most test nodes."""
    graph, y, test = subject.graph, subject.y, subject.test
    if len(test) < LEAST_NODES:
        return NEIGHBORS.skip(f"fewer than {LEAST_NODES} nodes are for testing")
    is_test = np.zeros(graph.num_nodes, dtype=bool)
    is_test[test] = True
    row, col = graph.adjacency.row.numpy(), graph.adjacency.col.numpy()
    at_test = is_test[row] & (row != col)
    pairs, hits = np.unique(col[at_test].astype(np.int64) * graph.num_classes + y[row[at_test]], return_counts=True)
    neighbors = np.bincount(col[at_test], minlength=graph.num_nodes)
    hub, c = np.divmod(pairs, graph.num_classes)
    size = np.bincount(y[test], minlength=graph.num_classes)
    f1 = 2 * hits / (neighbors[hub] + size[c])
    tells = np.flatnonzero((f1 >= TELLS) & (size[c] >= LEAST_NODES))
    lines = [
        f"node {graph.node_id[hub[k]]} is the neighbor of class {graph.class_names[c[k]]!r} (F1 {f1[k]:.3f})"
        for k in tells
    ]
    # one class may well follow from a neighbor, as everything that depends on a language does; most classes do not
    is_leak = size[np.unique(c[tells])].sum() >= MOST_TOLD * len(test)
    count = int((neighbors > 0).sum())
    clean = f"none of {plural(count, 'neighbor')} of test nodes"
    return NEIGHBORS.conclude(count, leaks=lines if is_leak else [], warnings=[] if is_leak else lines, clean=clean)


def _is_far_above(same: int, number: int, alike: int, others: int) -> bool:
    """Whether the odds `same` of `number` are far above those of `alike` of `others`; half an edge avoids zeros."""
    cells = [same + 0.5, number - same + 0.5, alike + 0.5, others - alike + 0.5]
    log_odds = math.log(cells[0] * cells[3] / (cells[1] * cells[2]))
    return log_odds > math.log(ODDS) and log_odds > DEVIATIONS * math.sqrt(sum(1 / cell for cell in cells))
