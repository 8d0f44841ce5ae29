"""Columns that tell the class by themselves: features, groups of one column of a table, degrees, ids and order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from legnn.errors import plural
from legnn.io import TableFeatures
from legnn.io.table_features import ONE_TYPE
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.rules import LEAST_NODES, RuleScore, score_rule
from legnn.labels.audit.subject import Subject

TELLS, NEARLY = 0.97, 0.9
"""A skill, or an F1 of one class, from which a column is a leak, or is worth a look."""
MORE_IN_TEST, HIGH_IN_TEST = 0.3, 0.5
"""A column whose skill is high in the test split, and by so much higher than elsewhere, holds labels of the test."""
TELLS_SPLIT = 0.9


class Column(NamedTuple):
    """A name, and a value of every node."""

    name: str
    values: np.ndarray
    """`[M]`, or those of some nodes in the order of `nodes`."""


def check_features(subject: Subject) -> list[Finding]:
    """Returns which features tell the class, and which tell the split."""
    tried = "learn a rule on each feature and each column of a table, and score it on other nodes of the split"
    columns = feature_columns(subject)
    return [
        _check_columns(subject, "features that tell the class", tried, columns),
        _check_split_columns(subject, columns),
    ]


def check_degrees(subject: Subject) -> Finding:
    """Returns whether degrees, or how many features a row has, tell the class."""
    graph = subject.graph
    adjacency = graph.adjacency
    columns = [
        Column("in-degree", np.diff(adjacency.rowptr.numpy())),
        Column("out-degree", np.bincount(adjacency.col.numpy(), minlength=graph.num_nodes)),
    ]
    if adjacency.weight is not None:
        columns += [Column("sum of the weights of edges", adjacency.degree.numpy())]
    nodes = np.concatenate([subject.test, subject.others])
    filled = np.zeros(graph.num_nodes, dtype=np.int64)
    filled[nodes] = np.count_nonzero(graph.x[nodes].numpy(), axis=1)
    columns += [Column("features that are not zero", filled)]
    tried = "learn a rule on degrees, sums of weights and the number of features that are not zero"
    whole = ((column.name, column.values) for column in columns)
    return _check_columns(subject, "degrees that tell the class", tried, [_of_nodes(subject, *one) for one in whole])


def check_ids_tell(subject: Subject) -> Finding:
    """Returns whether ids or the order of the nodes tell the class, which no model here reads."""
    check = "ids and order that tell the class"
    tried = "learn a rule on the order of nodes and on numbers, first words and lengths of ids"
    columns = [_of_nodes(subject, *one) for one in _id_columns(subject)]
    found = _check_columns(subject, check, tried, columns)
    if found.verdict != "failed":
        return found
    said = f"{found.detail}; no model reads ids or order, but features or edges made from them would hold the label"
    return conclude(check, tried, found.count, leaks=[], doubts=[said], clean="")


def feature_columns(subject: Subject) -> list[Column]:
    """Returns the features of the labeled node type, then each column of a table that is several features, as one."""
    graph, types = subject.graph, subject.graph.node_types
    names = graph.feature_names if types is None else types.columns[types.names.index(types.target)]
    nodes = np.concatenate([subject.test, subject.others])
    x = np.ascontiguousarray(graph.x[nodes].numpy()[:, : None if names is None else len(names)].T)
    features = [Column(f"feature {k}" if names is None else repr(names[k]), values) for k, values in enumerate(x)]
    return [*features, *table_columns(subject, nodes)]


def table_columns(subject: Subject, nodes: np.ndarray) -> Iterator[Column]:
    """The columns of the table of the labeled type that are several features each, as numbers of their values."""
    graph = subject.graph
    tables = graph.table_features.tables if isinstance(graph.table_features, TableFeatures) else {}
    table = tables.get(ONE_TYPE if graph.node_types is None else graph.node_types.target)
    if table is None:
        return
    start = 0
    for column in table.columns:
        width = len(column.feature_names)
        if column.kind == "text" and table.text is not None:
            width = table.text.channels
        if column.kind in ("category", "hashed"):
            part = graph.x[nodes, start : start + width].numpy()
            # the one feature that is not zero, and its sign
            place = np.abs(part).argmax(1)
            value = 2 * place + (np.take_along_axis(part, place[:, None], 1)[:, 0] > 0)
            yield Column(repr(column.name), np.where(part.any(1), value, -1))
        start += width


def _id_columns(subject: Subject) -> Iterator[tuple[str, np.ndarray]]:
    ids = subject.graph.node_id
    yield "order of the nodes", np.arange(len(ids))
    if ids.dtype.kind in "iu":
        yield "ids", ids
        return
    texts = pd.Series(ids).astype(str).str.lower()
    yield "first words of ids", texts.map(lambda text: re.split(r"[\W_\d]", text, maxsplit=1)[0]).factorize()[0]
    numbers = pd.to_numeric(texts.str.extract(r"(\d+)", expand=False), errors="coerce").fillna(-1)
    yield "numbers in ids", numbers.to_numpy(np.float64)
    yield "lengths of ids", texts.str.len().to_numpy()


def _of_nodes(subject: Subject, name: str, values: np.ndarray) -> Column:
    return Column(name, values[np.concatenate([subject.test, subject.others])])


def _check_columns(subject: Subject, check: str, tried: str, columns: Iterable[Column]) -> Finding:
    if len(subject.test) < LEAST_NODES:
        return not_applicable(check, tried, f"fewer than {LEAST_NODES} nodes are for testing")
    leaks: list[str] = []
    doubts: list[str] = []
    count = 0
    for column in columns:
        count += 1
        words, is_leak = _judge(subject, column)
        if words:
            (leaks if is_leak else doubts).append(f"{column.name} {words}")
    clean = f"none of {plural(count, 'column')} does"
    return conclude(check, tried, count, leaks=leaks, doubts=doubts, clean=clean)


def _judge(subject: Subject, column: Column) -> tuple[str, bool]:
    """What a column tells of the classes, empty if nothing is suspicious, and whether it is a leak."""
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
    # where the others are too few of the class, its F1 among them is 0 and says nothing
    by_class = test.class_f1 >= NEARLY and 0 < other.class_f1 <= test.class_f1 - 2 * MORE_IN_TEST
    return by_skill or by_class


def _check_split_columns(subject: Subject, columns: list[Column]) -> Finding:
    check, tried = "features that tell the split", "learn a rule on each feature that tells test nodes from others"
    tests, others = len(subject.test), len(subject.others)
    if min(tests, others) < LEAST_NODES:
        return not_applicable(check, tried, f"fewer than {LEAST_NODES} nodes are for testing, or for training")
    # as many of both, so that guessing is right for half of them
    size = min(tests, others)
    rows = np.concatenate([np.arange(size), tests + np.arange(size)])
    split = np.repeat([0, 1], size)
    scores = {column.name: score_rule(column.values[rows], split, 2).skill for column in columns}
    doubts = [f"{name} tells test nodes from others (skill {s:.2f})" for name, s in scores.items() if s >= TELLS_SPLIT]
    return conclude(check, tried, len(scores), leaks=[], doubts=doubts, clean="none does")
