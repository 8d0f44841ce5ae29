"""Sections of a page: for each, its name and title, and the function that builds its data.

A section has a dataclass in `payload.py`, a function and a line in `SECTIONS` here, and a script `assets/NAME.js`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from legnn.analysis.label_similarity import cosine_similarity, most_similar_pairs, order_by_similarity
from legnn.data import GraphData
from legnn.data.summary import missing_class_notes
from legnn.report import bands
from legnn.report.explanation import Explanation, explain
from legnn.report.payload import (
    Array,
    Classes,
    Curve,
    EffectView,
    ExplainedNode,
    LearnedLabels,
    MapPoints,
    NeighborView,
    Overview,
    Reliability,
    SuspiciousLabels,
)
from legnn.report.projection import label_map
from legnn.report.run_source import RunSource
from legnn.report.scores import leaderboard_of, scores_of, settings_of
from legnn.report.suspicious import suspicious_labels
from legnn.runs import RunFolder

MOST_PAIRS = 12
MOST_CLASSES = 24
"""Rows and columns of a matrix of classes."""
MOST_CURVES = 12
LOGGED = (
    "epoch",
    "loss",
    "supervised_loss",
    "val_loss",
    "train_accuracy",
    "training_confidence",
    "pseudo_labels",
    "pseudo_label_accuracy",
)
"""Columns of the log that a page shows."""


def build_overview(source: RunSource) -> Overview:
    """Returns scores, costs, settings and notes."""
    run, result = source.run, source.run.result
    return Overview(
        scores=scores_of(run),
        best_epoch=result.best_epoch,
        epochs=result.epochs,
        seconds=result.seconds,
        parameters=result.parameters,
        device=result.device,
        settings=settings_of(run),
        notes=list(dict.fromkeys(map(str, [*run.card.notes, *result.notes, *missing_class_notes(source.graph)]))),
        leaderboard=leaderboard_of(run),
    )


def build_curves(source: RunSource) -> list[Curve]:
    """Returns the metrics by epoch of all members that were trained."""
    folders = list(dict.fromkeys(member.folder for member in source.run.members if member.folder is not None))
    curves = [curve_of(RunFolder(folder)) for folder in folders[:MOST_CURVES]]
    return [curve for curve in curves if curve.values["epoch"]]


def curve_of(folder: RunFolder, after: int = 0) -> Curve:
    """Returns the epochs of a run after the first `after` ones."""
    logs = folder.logs()[after:]
    best = folder.result().best_epoch if folder.is_finished else None
    return Curve(
        name=folder.path.name,
        best=best,
        values={name: [log[name] for log in logs] for name in LOGGED},
        val={name: [log["val"].get(name) for log in logs] for name in (logs[0]["val"] if logs else ())},
    )


def build_classes(source: RunSource) -> Classes:
    """Returns scores by class, the confusion of classes, and the similarity of their labels."""
    evaluation = source.evaluation
    confusion = np.array(evaluation.confusion)
    wrong = confusion.copy()
    np.fill_diagonal(wrong, 0)
    most = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = [(int(i), int(j), int(wrong[i, j])) for i, j in np.stack(np.unravel_index(most, wrong.shape), 1)]
    order = np.sort(np.argsort(-confusion.sum(1), kind="stable")[:MOST_CLASSES])
    return Classes(
        nodes=source.scored_nodes,
        scores=evaluation.classes if evaluation.num_nodes else [],
        order=order.tolist(),
        confusion=confusion[np.ix_(order, order)],
        pairs=[pair for pair in pairs if pair[2]],
        labels=None if source.states.labels is None else _learned_labels(source.states.labels, order),
    )


def _learned_labels(labels: np.ndarray, largest: np.ndarray) -> LearnedLabels:
    similarity = cosine_similarity(labels)
    pairs = most_similar_pairs(similarity, list(range(len(labels))), MOST_PAIRS)
    order = largest[order_by_similarity(similarity[np.ix_(largest, largest)])]
    return LearnedLabels(
        points=np.round(label_map(labels), 5),
        pairs=[(int(a), int(b), round(float(cosine), 4)) for a, b, cosine in pairs.itertuples(index=False)],
        order=order.tolist(),
        similarity=np.round(similarity[np.ix_(order, order)], 3),
    )


def build_map(source: RunSource) -> MapPoints:
    """Returns the points of nodes in two dimensions."""
    node_map = source.node_map
    rows = Array.of(source.page_row[node_map.nodes], "u4")
    return MapPoints(words=node_map.words, rows=rows, points=Array.of(node_map.points, "f4"))


def build_explanations(source: RunSource) -> list[ExplainedNode]:
    """Returns the explanations of the chosen nodes."""
    rows = source.explained_rows
    source.say(f"{source.name}: computing predictions of {len(rows):,} nodes again, with parts of the input removed")
    explanations = explain(source.run, source.graph, source.table.rows[rows].tolist(), device=source.device)
    return [_explained_node(source, explanation) for explanation in explanations]


def _explained_node(source: RunSource, explanation: Explanation) -> ExplainedNode:
    graph, types = source.graph, source.graph.node_types
    p = explanation.p

    def reference(node: int) -> dict[str, Any]:
        row = int(np.searchsorted(source.table.rows, node))
        is_listed = row < len(source.table.rows) and source.table.rows[row] == node
        return {
            "id": str(graph.node_id[node]),
            "row": int(source.page_row[row]) if is_listed else -1,
            "type": None if types is None else types.names[int(types.node_type[node])],
        }

    return ExplainedNode(
        **reference(explanation.node),
        p=[(int(c), round(float(p[c]), 5)) for c in np.argsort(-p, kind="stable") if p[c] >= 5e-4][:20],
        neighbors=[NeighborView(**reference(node), shows=shows) for node, shows in explanation.neighbors.items()],
        edges=_edges_among(graph, list(explanation.neighbors)),
        num_neighbors=explanation.num_neighbors,
        num_removals=explanation.num_removals,
        effects=[
            EffectView(
                **reference(effect.removal.node),
                kind=effect.removal.kind,
                change=round(effect.change, 6),
                becomes=effect.becomes,
            )
            for effect in explanation.effects
        ],
    )


def _edges_among(graph: GraphData, nodes: Sequence[int]) -> list[tuple[int, int]]:
    """Returns pairs of positions in `nodes` of nodes that are connected."""
    position = {node: k for k, node in enumerate(nodes)}
    edges = set()
    for node, k in position.items():
        begin, end = graph.adjacency.rowptr[node : node + 2].tolist()
        others = {position[col] for col in graph.adjacency.col[begin:end].tolist() if col in position} - {k}
        edges |= {(min(k, other), max(k, other)) for other in others}
    return sorted(edges)


def build_reliability(source: RunSource) -> Reliability:
    """Returns calibration, and accuracy by confidence, degree, homophily and distance to the nearest shown label."""
    table, graph, scored = source.table, source.graph, source.table.scored
    confidence, correct = table.confidence[scored], (table.predicted == table.y)[scored]
    scores = source.evaluation.scores or {}
    return Reliability(
        nodes=source.scored_nodes if scores else "",
        ece=scores.get("ece"),
        brier=scores.get("brier"),
        confidence=bands.by_confidence(confidence, correct),
        high_confidence=bands.by_confidence(confidence, correct, low=0.9),
        degree=bands.by_degree(source.degree[scored], confidence, correct),
        homophily=bands.by_homophily(bands.neighbor_homophily(graph)[table.rows][scored], confidence, correct),
        distance=bands.by_distance(bands.distance_to_shown(graph)[table.rows][scored], confidence, correct),
    )


def build_labels(source: RunSource) -> SuspiciousLabels | None:
    """Returns the labels that look wrong, if they were checked."""
    return None if source.checked is None else suspicious_labels(source.checked, source.table, source.page_row)


class Section(NamedTuple):
    """A section of a page; one whose data are None for all runs is left out."""

    title: str
    build: Callable[[RunSource], Any]


SECTIONS = {
    "overview": Section("Overview", build_overview),
    "curves": Section("Curves", build_curves),
    "classes": Section("Classes", build_classes),
    "map": Section("Map of the nodes", build_map),
    "node": Section("A node", build_explanations),
    "reliability": Section("Where it is right", build_reliability),
    "labels": Section("Labels that look wrong", build_labels),
}
"""By name, in order; the script of a section is `assets/NAME.js`."""
