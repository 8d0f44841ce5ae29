"""Labels in the edges: among test nodes far more alike than elsewhere, weights and neighbors that tell the class."""

from __future__ import annotations

import math

import numpy as np

from legnn.errors import plural
from legnn.labels.audit.columns import TELLS
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.rules import LEAST_NODES, score_rule
from legnn.labels.audit.subject import Subject

LEAST_EDGES = 100
"""Fewer edges between nodes of two splits say nothing of them."""
ODDS, DEVIATIONS = 3.0, 6.0
"""The odds that ends share a class, so many times those elsewhere and so many deviations above, are no chance."""
MOST_EDGES = 200_000
MOST_TOLD = 0.5
"""The share of test nodes whose class a neighbor tells from which it is a leak."""


def check_edges(subject: Subject) -> list[Finding]:
    """Returns what the edges of labeled nodes tell of the classes."""
    return [_check_homophily(subject), _check_weights(subject), _check_neighbors(subject)]


def _labeled_edges(subject: Subject) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets, sources and positions of edges between two nodes of a split, self-loops left out, drawn if many."""
    graph, y = subject.graph, subject.y
    splits = (graph.train_mask | graph.val_mask | graph.test_mask).numpy() & (y >= 0)
    row, col = graph.adjacency.row.numpy(), graph.adjacency.col.numpy()
    place = np.flatnonzero(splits[row] & splits[col] & (row != col))
    if len(place) > MOST_EDGES:
        place = np.sort(np.random.default_rng(0).choice(place, MOST_EDGES, replace=False))
    return row[place], col[place], place


def _check_homophily(subject: Subject) -> Finding:
    check = "edges made of test labels"
    tried = "compare how often ends share a class: two test nodes, one, and none"
    row, col, _ = _labeled_edges(subject)
    test, y = subject.graph.test_mask.numpy(), subject.y
    tests = test[row].astype(int) + test[col]
    counts = [(int((y[row] == y[col])[tests == k].sum()), int((tests == k).sum())) for k in (0, 1, 2)]
    # where training and validation nodes are few, edges from them to test nodes are what others are compared with
    base = next((k for k in (0, 1) if counts[k][1] >= LEAST_EDGES), 2)
    if base == 2 or max(number for _, number in counts[base + 1 :]) < LEAST_EDGES:
        return not_applicable(check, tried, f"fewer than {LEAST_EDGES} edges are between such nodes")
    alike, others = counts[base]
    leaks = []
    for k, words in ((1, "one test node and another"), (2, "two test nodes")):
        same, number = counts[k]
        if k > base and number >= LEAST_EDGES and _is_far_above(same, number, alike, others):
            leaks.append(f"{same / number:.0%} of edges between {words} share a class, elsewhere {alike / others:.0%}")
    shares = " / ".join(f"{same / number:.0%}" if number else "none" for same, number in reversed(counts))
    return conclude(check, tried, len(row), leaks=leaks, clean=f"{shares} share a class")


def _is_far_above(same: int, number: int, alike: int, others: int) -> bool:
    """Whether the odds `same` of `number` are far above those of `alike` of `others`; half an edge avoids zeros."""
    cells = [same + 0.5, number - same + 0.5, alike + 0.5, others - alike + 0.5]
    log_odds = math.log(cells[0] * cells[3] / (cells[1] * cells[2]))
    return log_odds > math.log(ODDS) and log_odds > DEVIATIONS * math.sqrt(sum(1 / cell for cell in cells))


def _check_weights(subject: Subject) -> Finding:
    check, tried = (
        "weights that tell the class",
        "learn a rule on the weight of an edge that tells if its ends share a class",
    )
    weight = subject.graph.adjacency.weight
    if weight is None:
        return not_applicable(check, tried, "edges have no weights")
    row, col, place = _labeled_edges(subject)
    test, y = subject.graph.test_mask.numpy(), subject.y
    at_test = test[row] | test[col]
    if at_test.sum() < LEAST_EDGES:
        return not_applicable(check, tried, f"fewer than {LEAST_EDGES} edges have a test node")
    same = (y[row] == y[col]).astype(np.int64)[at_test]
    skill = score_rule(weight.numpy()[place][at_test], same, 2).skill
    leaks = [f"the weight tells whether ends share a class (skill {skill:.3f})"] if skill >= TELLS else []
    return conclude(check, tried, int(at_test.sum()), leaks=leaks, clean=f"skill {max(skill, 0):.2f} of 1")


def _check_neighbors(subject: Subject) -> Finding:
    check, tried = "neighbors that tell the class", "look for a node whose neighbors are the test nodes of one class"
    graph, y, test = subject.graph, subject.y, subject.test
    if len(test) < LEAST_NODES:
        return not_applicable(check, tried, f"fewer than {LEAST_NODES} nodes are for testing")
    is_test = np.zeros(graph.num_nodes, dtype=bool)
    is_test[test] = True
    row, col = graph.adjacency.row.numpy(), graph.adjacency.col.numpy()
    kept = is_test[row] & (row != col)
    pairs, hits = np.unique(col[kept].astype(np.int64) * graph.num_classes + y[row[kept]], return_counts=True)
    neighbors = np.bincount(col[kept], minlength=graph.num_nodes)
    hub, c = np.divmod(pairs, graph.num_classes)
    size = np.bincount(y[test], minlength=graph.num_classes)
    f1 = 2 * hits / (neighbors[hub] + size[c])
    tells = np.flatnonzero((f1 >= TELLS) & (size[c] >= LEAST_NODES))
    told = [
        f"node {graph.node_id[hub[k]]} is the neighbor of class {graph.class_names[c[k]]!r} (F1 {f1[k]:.3f})"
        for k in tells
    ]
    # one class may well follow from a neighbor, as what depends on a language does; that most do is made
    covers = size[np.unique(c[tells])].sum() >= MOST_TOLD * len(test)
    leaks, doubts = (told, []) if covers else ([], told)
    count = int((neighbors > 0).sum())
    clean = f"none of {plural(count, 'neighbor')} of test nodes"
    return conclude(check, tried, count, leaks=leaks, doubts=doubts, clean=clean)
