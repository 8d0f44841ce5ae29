"""All that a page shows of runs, as plain values: nothing here knows how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from legnn import __version__
from legnn.analysis.calibration import brier_score, expected_calibration_error
from legnn.analysis.label_similarity import cosine_similarity, most_similar_pairs
from legnn.data import GraphData, statistics
from legnn.data.summary import missing_class_notes
from legnn.report import bands
from legnn.report.encoding import pack
from legnn.report.explanation import MOST_NEIGHBORS, Explanation, explain
from legnn.report.nodes import MOST_NODES, NodeTable
from legnn.report.projection import hidden_states, label_map, project
from legnn.report.scores import differing, leaderboard_of, scores_of, settings_of
from legnn.report.suspicious import collect_labels, read_checked_labels
from legnn.runs import Predictor, RunFolder, open_predictor
from legnn.runs.evaluation import class_scores, confusion_matrix
from legnn.training import title_of

MOST_PAIRS = 12
MOST_COURSES = 12
"""Curves of no more runs of one ensemble."""
CURVES = ("epoch", "loss", "supervised_loss", "val_loss", "train_accuracy", "training_confidence",
          "pseudo_labels", "pseudo_label_accuracy")  # fmt: skip

Say = Callable[[str], None]


def collect(
    runs: Sequence[Predictor | str | Path],
    *,
    nodes: Sequence[str] | None = None,
    labels: pd.DataFrame | str | Path | None = None,
    device: str = "auto",
    say: Say = lambda line: None,
) -> dict[str, Any]:
    """Returns what the page of finished runs shows.

    Args:
        runs: runs or ensembles, or their folders.
        nodes: ids of the nodes that are explained; the most interesting ones if not given.
        labels: given labels that were checked, as a table or its file.
        say: called with a line before each step that takes long.
    """
    opened = [open_predictor(one) if isinstance(one, str | Path) else one for one in runs]
    names = _names(opened)
    checked = None if labels is None else read_checked_labels(labels)
    parts = [_collect_run(run, name, nodes, checked, device, say) for run, name in zip(opened, names, strict=True)]
    return {"version": __version__, "runs": parts, "differing": differing(opened) if len(opened) > 1 else {}}


def _names(runs: Sequence[Predictor]) -> list[str]:
    """The names of the folders, with those of their parents where that tells them apart."""
    paths = [None if run.folder is None else run.folder.resolve() for run in runs]
    short = [f"run {k}" if path is None else path.name for k, path in enumerate(paths, 1)]
    if len(set(short)) == len(short):
        return short
    return [name if path is None else f"{path.parent.name}/{name}" for name, path in zip(short, paths, strict=True)]


def _collect_run(
    run: Predictor, name: str, ids: Sequence[str] | None, checked: pd.DataFrame | None, device: str, say: Say
) -> dict[str, Any]:
    say(f"{name}: predicting every node")
    graph, probabilities = run.probabilities(device=device)
    if len(run.members) == 1:
        # it is read once
        run = run.with_members([replace(run.members[0], graph=graph)])
    table = NodeTable.of(graph, probabilities.double().numpy())
    chosen = table.choose() if ids is None else table.find(ids)
    z, labels, of_what = hidden_states(run, table.p, device)
    say(f"{name}: projecting {min(len(z), 20_000):,} nodes")
    places = project(z, of_what, chosen)
    say(f"{name}: computing predictions of {len(chosen):,} nodes again, with labels, edges and features removed")
    explanations = explain(run, graph, table.rows[chosen].tolist(), device=device)
    kept = np.arange(len(table.rows)) if len(table.rows) <= MOST_NODES else places.nodes
    degree = bands.degrees(graph)[table.rows]
    of_row = np.full(len(table.rows), -1)
    of_row[kept] = np.arange(len(kept))
    suspicious = None if checked is None else collect_labels(checked, table, of_row)
    return {
        **_overview(run, name, graph),
        "classes": [str(one) for one in graph.class_names],
        "curves": _curves(run),
        "scores_by_class": _classes(table, graph),
        "labels": None if labels is None else _labels(labels, graph.class_names),
        "nodes": table.pack(kept, degree),
        "map": {
            "words": places.words,
            "rows": pack(of_row[places.nodes], "u4"),
            "points": pack(places.points, "f4"),
        },
        "explained": [_explained(one, table, graph, of_row) for one in explanations],
        "explained_of": len(chosen),
        "bands": _bands(table, graph, degree),
        "suspicious": suspicious,
    }


def _overview(run: Predictor, name: str, graph: GraphData) -> dict[str, Any]:
    facts, result = statistics(graph), run.result
    notes = dict.fromkeys([*run.card.notes, *result.notes, *missing_class_notes(graph)])
    return {
        "name": name,
        "title": run.title,
        "kind": run.kind,
        "data": facts._asdict(),
        "types": run.card.types,
        "target_type": run.card.target_type,
        "scores": scores_of(run),
        "result": {
            "best_epoch": result.best_epoch,
            "epochs": result.epochs,
            "seconds": result.seconds,
            "parameters": result.parameters,
            "device": result.device,
            "precision": result.precision,
            "seed": result.seed,
            "versions": result.versions,
        },
        "settings": {key: str(value) for key, value in settings_of(run).items()},
        "notes": [str(note) for note in notes],
        "leaderboard": leaderboard_of(run),
    }


def curves_of(folder: RunFolder) -> dict[str, Any]:
    """Returns the columns of a run's epochs."""
    logs = folder.logs()
    best = folder.result().best_epoch if folder.is_finished else None
    val = {f"val_{name}": [log["val"].get(name) for log in logs] for name in (logs[0]["val"] if logs else ())}
    titles = {f"val_{name}": title_of(name) for name in (logs[0]["val"] if logs else ())}
    columns = {name: [log[name] for log in logs] for name in CURVES}
    return {"name": folder.path.name, "best": best, "titles": titles, **columns, **val}


def _curves(run: Predictor) -> list[dict[str, Any]]:
    folders = list(dict.fromkeys(one.folder for one in run.members if one.folder is not None))
    found = [curves_of(RunFolder(folder)) for folder in folders[:MOST_COURSES]]
    return [one for one in found if one["epoch"]]


def _classes(table: NodeTable, graph: GraphData) -> dict[str, Any]:
    chosen = table.scored
    y, predicted, p = table.y[chosen], table.predicted[chosen], table.p[chosen]
    confusion = confusion_matrix(predicted, y, graph.num_classes)
    wrong = confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = [(int(k) // graph.num_classes, int(k) % graph.num_classes) for k in order]
    is_test = bool((graph.test_mask & (graph.y >= 0)).any())
    return {
        "of": f"{len(y):,} {'test nodes' if is_test else 'labeled nodes outside the training split'}",
        "rows": class_scores(confusion, graph.class_names) if len(y) else [],
        "confusion": confusion,
        "pairs": [(i, j, int(wrong[i, j])) for i, j in pairs if wrong[i, j]],
        "ece": expected_calibration_error(table.confidence[chosen], predicted == y) if len(y) else None,
        "brier": brier_score(p, y) if len(y) else None,
    }


def _labels(labels: np.ndarray, names: Sequence[Any]) -> dict[str, Any]:
    similarity = cosine_similarity(labels)
    numbers = most_similar_pairs(similarity, list(range(len(names))), MOST_PAIRS)
    return {
        "points": np.round(label_map(labels), 5),
        "pairs": [(int(a), int(b), round(float(s), 4)) for a, b, s in numbers.itertuples(index=False)],
    }


def _explained(one: Explanation, table: NodeTable, graph: GraphData, of_row: np.ndarray) -> dict[str, Any]:
    """An explanation whose nodes are rows of the page's table, or names where they are not in it."""
    row_of = {int(node): k for k, node in enumerate(table.rows.tolist())} if len(table.rows) < graph.num_nodes else None

    def place(node: int) -> dict[str, Any]:
        row = node if row_of is None else row_of.get(node, -1)
        types = graph.node_types
        kind = None if types is None else types.names[int(types.node_type[node])]
        return {"id": str(graph.node_id[node]), "row": int(of_row[row]) if row >= 0 else -1, "type": kind}

    order = np.argsort(-one.p, kind="stable")
    near = {neighbor.node for neighbor in one.neighbors}
    return {
        **place(one.node),
        "p": [(int(c), round(float(one.p[c]), 5)) for c in order if one.p[c] >= 5e-4][:20],
        "neighbors": [{**place(neighbor.node), "shows": neighbor.shows} for neighbor in one.neighbors],
        "edges": _edges_among(graph, [neighbor.node for neighbor in one.neighbors], near),
        "num_neighbors": one.num_neighbors,
        "tried": one.num_removals,
        "effects": [
            {**place(effect.node), "kind": effect.kind, "own": effect.node == one.node,
             "change": round(effect.change, 6), "becomes": effect.becomes}
            for effect in one.effects
        ],
    }  # fmt: skip


def _edges_among(graph: GraphData, nodes: Sequence[int], near: set[int]) -> list[tuple[int, int]]:
    """Pairs of positions in `nodes`, at most `MOST_NEIGHBORS`, of neighbors that are neighbors of each other."""
    assert len(nodes) <= MOST_NEIGHBORS
    place = {node: k for k, node in enumerate(nodes)}
    found = set()
    for node in nodes:
        begin, end = graph.adjacency.rowptr[node : node + 2].tolist()
        for other in near.intersection(graph.adjacency.col[begin:end].tolist()) - {node}:
            found.add((min(place[node], place[other]), max(place[node], place[other])))
    return sorted(found)


def _bands(table: NodeTable, graph: GraphData, degree: np.ndarray) -> dict[str, Any]:
    chosen = table.scored
    confidence, correct = table.confidence[chosen], (table.predicted == table.y)[chosen]
    homophily = bands.neighbor_homophily(graph)[table.rows][chosen]
    distance = bands.distance_to_shown(graph)[table.rows][chosen]
    return {
        "confidence": bands.by_confidence(confidence, correct),
        "degree": bands.by_degree(degree[chosen], confidence, correct),
        "homophily": bands.by_homophily(homophily, confidence, correct),
        "distance": bands.by_distance(distance, confidence, correct),
    }
