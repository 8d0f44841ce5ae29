"""Columns that tell the class by themselves: features, columns of a table, and degrees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from legnn.errors import plural
from legnn.io import TableFeatures
from legnn.io.table_features import ONE_TYPE
from legnn.labels.audit.findings import Check, Finding
from legnn.labels.audit.rules import LEAST_NODES, RuleScore, score_rule
from legnn.labels.audit.subject import Subject

TELLS, NEARLY = 0.97, 0.9
"""A skill, or an F1 of one class, from which a column is a leak, or is worth a look."""
MORE_IN_TEST, HIGH_IN_TEST = 0.3, 0.5
"""A column holds test labels if its skill is high in the test split, and higher by this much than elsewhere."""

FEATURES = Check(
    "features that tell the class",
    "learn a rule on each feature and each column of a table, and score it on other nodes of the split",
)
DEGREES = Check(
    "degrees that tell the class",
    "learn a rule on degrees, sums of weights and the number of features that are not zero",
)


class Column(NamedTuple):
    """A name, and the values of the test nodes followed by those of the other nodes."""

    name: str
    values: np.ndarray


def check_features(subject: Subject) -> Finding:
    """Returns which features tell the class."""
    graph, types, nodes = subject.graph, subject.graph.node_types, subject.compared
    names = graph.feature_names if types is None else types.columns[types.names.index(types.target)]
    x = np.ascontiguousarray(graph.x[nodes].numpy()[:, : None if names is None else len(names)].T)
    features = [Column(f"feature {k}" if names is None else repr(names[k]), values) for k, values in enumerate(x)]
    return _check_columns(FEATURES, subject, [*features, *_table_columns(subject)])


def check_degrees(subject: Subject) -> Finding:
    """Returns whether degrees, or the number of features of a row, tell the class."""
    graph, nodes = subject.graph, subject.compared
    adjacency = graph.adjacency
    columns = {
        "in-degree": np.diff(adjacency.rowptr.numpy())[nodes],
        "out-degree": np.bincount(adjacency.col.numpy(), minlength=graph.num_nodes)[nodes],
        "features that are not zero": np.count_nonzero(graph.x[nodes].numpy(), axis=1),
    }
    if adjacency.weight is not None:
        columns["sum of the weights of edges"] = adjacency.degree.numpy()[nodes]
    return _check_columns(DEGREES, subject, [Column(name, values) for name, values in columns.items()])


def _table_columns(subject: Subject) -> Iterator[Column]:
    """Yields the categorical columns of the table of the labeled type, which are several features each, as one."""
    graph = subject.graph
    tables = graph.table_features.tables if isinstance(graph.table_features, TableFeatures) else {}
    table = tables.get(ONE_TYPE if graph.node_types is None else graph.node_types.target)
    start = 0
    for column in [] if table is None else table.columns:
        width = len(column.feature_names)
        if column.kind == "text" and table is not None and table.text is not None:
            width = table.text.channels
        if column.kind in ("category", "hashed"):
            part = graph.x[subject.compared, start : start + width].numpy()
            # the feature that is not zero, and its sign
            largest = np.abs(part).argmax(1)
            value = 2 * largest + (np.take_along_axis(part, largest[:, None], 1)[:, 0] > 0)
            yield Column(repr(column.name), np.where(part.any(1), value, -1))
        start += width


def _check_columns(check: Check, subject: Subject, columns: list[Column]) -> Finding:
    if len(subject.test) < LEAST_NODES:
        return check.skip(f"fewer than {LEAST_NODES} nodes are for testing")
    leaks: list[str] = []
    warnings: list[str] = []
    for column in columns:
        words, is_leak = _judge(subject, column)
        if words:
            (leaks if is_leak else warnings).append(f"{column.name} {words}")
    clean = f"none of {plural(len(columns), 'column')} does"
    return check.conclude(len(columns), leaks=leaks, warnings=warnings, clean=clean)


def _judge(subject: Subject, column: Column) -> tuple[str, bool]:
    """Returns which classes a column tells, empty if nothing is suspicious, and whether it is a leak."""
    classes, tests = subject.graph.num_classes, len(subject.test)
    test = score_rule(column.values[:tests], subject.y[subject.test], classes)
    name = subject.graph.class_names[test.best_class]
    if max(test.skill, test.class_f1) < HIGH_IN_TEST:
        return "", False
    if test.skill >= TELLS:
        return f"tells the classes of test nodes (skill {test.skill:.3f})", True
    if test.class_f1 >= TELLS:
        return f"tells class {name!r} of test nodes (F1 {test.class_f1:.3f})", True
    other = score_rule(column.values[tests:], subject.y[subject.others], classes)
    if _is_more(test, other):
        return f"tells far more of test nodes than of others (skill {test.skill:.2f} and {other.skill:.2f})", True
    if max(test.skill, test.class_f1) >= NEARLY:
        return f"nearly tells class {name!r} (F1 {test.class_f1:.2f}, skill {test.skill:.2f})", False
    return "", False


def _is_more(test: RuleScore, other: RuleScore) -> bool:
    by_skill = test.skill >= HIGH_IN_TEST and test.skill - other.skill >= MORE_IN_TEST
    # an F1 of 0 among the others means that they have too few nodes of the class
    by_class = test.class_f1 >= NEARLY and 0 < other.class_f1 <= test.class_f1 - 2 * MORE_IN_TEST
    return by_skill or by_class
