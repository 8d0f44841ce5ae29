"""Content of a page that was not computed: as many nodes as wanted, at once."""

from typing import Any

import numpy as np

from legnn.report import bands
from legnn.report.encoding import pack, pack_fraction

CLASSES = ["plain", "with, comma", "<script>window.leaked = true</script>", "naïve"]


def made_up_run(
    nodes: int = 400, name: str = "made-up", classes: list[str] = CLASSES, points: int = 20_000
) -> dict[str, Any]:
    """The content of one run, as `collecting.collect` returns it."""
    draw = np.random.default_rng(0)
    size = len(classes)
    y = draw.integers(0, size, nodes)
    predicted = np.where(draw.random(nodes) < 0.9, y, draw.integers(0, size, nodes))
    confidence = draw.uniform(0.5, 1, nodes)
    correct = predicted == y
    centers = np.array([(np.cos(a), np.sin(a)) for a in 2 * np.pi * np.arange(size) / size])
    rows = np.sort(draw.choice(nodes, min(nodes, points), replace=False))
    places = 0.5 + 0.3 * centers[y[rows]] + draw.normal(0, 0.04, (len(rows), 2))
    confusion = np.zeros((size, size), dtype=int)
    np.add.at(confusion, (y, predicted), 1)
    second = (predicted + 1) % size
    epochs = list(range(1, 31))
    scores = [
        {"split": split, "values": {"accuracy": {"mean": 0.9, "std": None}, "other": {"mean": 0.89, "std": None}}}
        for split in ("test", "validation")
    ]
    return {
        "name": name, "title": "GCN, enhanced labels", "kind": "run", "types": [], "target_type": None,
        "data": {"name": "made-up", "nodes": nodes, "edges": 5 * nodes, "features": 8, "classes": size,
                 "labeled": nodes, "train_percent": 10.0, "val_percent": 10.0, "test_percent": 80.0, "homophily": 0.8},
        "scores": scores,
        "result": {"best_epoch": 20, "epochs": 30, "seconds": 3.0, "parameters": 1000, "device": "a CPU",
                   "precision": "fp32", "seed": 0, "versions": {}},
        "settings": {"backbone": "gcn"}, "notes": ["A note."], "leaderboard": None, "classes": classes,
        "curves": [{"name": name, "best": 20, "epoch": epochs,
                    "titles": {"val_accuracy": "accuracy", "val_other": "other"}, **{
            key: [1 - 1 / (1 + e) for e in epochs]
            for key in ("loss", "supervised_loss", "val_loss", "train_accuracy", "val_accuracy", "val_other",
                        "training_confidence", "pseudo_labels", "pseudo_label_accuracy")}}],
        "scores_by_class": {
            "of": f"{nodes:,} test nodes", "confusion": confusion, "pairs": [(0, 1, int(confusion[0, 1]))],
            "rows": [{"name": one, "precision": 0.9, "recall": 0.9, "f1": 0.9, "support": int((y == c).sum())}
                     for c, one in enumerate(classes)],
            "ece": 0.03, "brier": 0.2},
        "labels": {"points": centers, "pairs": [(0, 1, 0.5)]},
        "nodes": {"ids": "\n".join(f"node-{k}" for k in range(nodes)), "count": nodes, "of": nodes, "top": 2,
                  "y": pack(y, "u2"), "split": pack(np.full(nodes, 3), "u1"), "degree": pack(np.full(nodes, 5), "u4"),
                  "classes": pack(np.stack([predicted, second], 1), "u2"),
                  "p": pack_fraction(np.stack([confidence, 1 - confidence], 1))},
        "map": {"words": "made up", "rows": pack(rows, "u4"), "points": pack(places, "f4")},
        "explained": [{
            "id": "node-3", "row": 3, "type": None, "p": [(int(predicted[3]), 0.8), (int(second[3]), 0.2)],
            "neighbors": [{"id": f"node-{k}", "row": k, "type": None, "shows": k % size if k % 2 else -1}
                          for k in range(4, 10)],
            "edges": [(0, 1)], "num_neighbors": 6, "tried": 16,
            "effects": [{"id": "node-5", "row": 5, "type": None, "kind": "label", "own": False, "change": -0.2,
                         "becomes": int(second[3])},
                        {"id": "node-3", "row": 3, "type": None, "kind": "features", "own": True, "change": 0.1,
                         "becomes": int(predicted[3])}]}],
        "explained_of": 1,
        "bands": {"confidence": bands.by_confidence(confidence, correct),
                  "degree": bands.by_degree(draw.integers(0, 40, nodes), confidence, correct),
                  "homophily": bands.by_homophily(draw.random(nodes), confidence, correct),
                  "distance": bands.by_distance(draw.integers(-1, 8, nodes), confidence, correct)},
    }  # fmt: skip


def made_up_labels(count: int = 300, rows: int = 400) -> dict[str, Any]:
    """Labels that look wrong, of the last nodes first; the very first is of a node that the page does not have."""
    return {"of": rows, "rows": [
        {"id": f"node-{rows - k}", "row": rows - k if k else -1, "label": k % 4, "suggested": (k + 1) % 4,
         "score": 1 - k / count, "p_label": 0.1, "p_suggested": 0.8, "neighbors": 5.0, "neighbors_label": 1.0,
         "neighbors_suggested": 3.0, "split": "train"}
        for k in range(count)]}  # fmt: skip


def made_up_page(*runs: dict[str, Any]) -> dict[str, Any]:
    """The content of a page of runs."""
    several = {"backbone": ["gcn"] * len(runs)} if len(runs) > 1 else {}
    return {"version": "0", "runs": list(runs), "differing": several}
