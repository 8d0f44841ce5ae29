"""Data of a page that was not computed: as many nodes as wanted, at once."""

import numpy as np

from legnn.report import bands
from legnn.report.payload import (
    Array,
    Classes,
    Curve,
    DataFacts,
    EffectView,
    ExplainedNode,
    LearnedLabels,
    MapPoints,
    NeighborView,
    NodeColumns,
    Overview,
    Page,
    Reliability,
    RunPayload,
    SplitScores,
    SuspiciousLabel,
    SuspiciousLabels,
)
from legnn.report.sections import LOGGED, SECTIONS
from legnn.runs import MeanStd
from legnn.runs.evaluation import ClassScores

CLASSES = ["plain", "with, comma", "<script>window.leaked = true</script>", "naïve"]


def made_up_run(
    nodes: int = 400,
    name: str = "made-up",
    classes: list[str] = CLASSES,
    points: int = 20_000,
    labels: SuspiciousLabels | None = None,
    data: str = "made-up",
) -> RunPayload:
    """Returns the payload of one run."""
    draw = np.random.default_rng(0)
    size = len(classes)
    y = draw.integers(0, size, nodes)
    predicted = np.where(draw.random(nodes) < 0.9, y, draw.integers(0, size, nodes))
    confidence = draw.uniform(0.5, 1, nodes)
    correct = predicted == y
    centers = np.array([(np.cos(a), np.sin(a)) for a in 2 * np.pi * np.arange(size) / size])
    rows = np.sort(draw.choice(nodes, min(nodes, points), replace=False))
    confusion = np.zeros((size, size), dtype=int)
    np.add.at(confusion, (y, predicted), 1)
    second = (predicted + 1) % size
    epochs = list(range(1, 31))
    values = [1 - 1 / (1 + epoch) for epoch in epochs]
    scores = {"accuracy": MeanStd(mean=0.9, std=None), "macro_f1": MeanStd(mean=0.89, std=0.01)}
    overview = Overview(
        scores=[SplitScores(split=split, scores=scores) for split in ("test", "validation")],
        best_epoch=20, epochs=30, seconds=3.0, parameters=1000, device="a CPU", settings={"model.backbone": "gcn"},
        notes=["A note."], leaderboard=None,
    )  # fmt: skip
    curve = Curve(
        name=name, best=20, values={**dict.fromkeys(LOGGED, values), "epoch": epochs}, val={"accuracy": values}
    )
    class_scores = [
        ClassScores(name=each, precision=0.9, recall=0.9, f1=0.9, support=int((y == c).sum()))
        for c, each in enumerate(classes)
    ]
    similarity = LearnedLabels(
        points=centers, pairs=[(0, 1, 0.5)], order=list(range(size)), similarity=np.round(centers @ centers.T, 3)
    )
    node_columns = NodeColumns(
        ids="\n".join(f"node-{k}" for k in range(nodes)), count=nodes, top=2,
        y=Array.of(y, "u2"), split=Array.of(np.full(nodes, 3), "u1"), degree=Array.of(np.full(nodes, 5), "u4"),
        classes=Array.of(np.stack([predicted, second], 1), "u2"),
        p=Array.of_fractions(np.stack([confidence, 1 - confidence], 1)),
    )  # fmt: skip
    explained = ExplainedNode(
        id="node-3", row=3, type=None, p=[(int(predicted[3]), 0.8), (int(second[3]), 0.2)],
        neighbors=[
            NeighborView(id=f"node-{k}", row=k, type=None, shows=k % size if k % 2 else -1) for k in range(4, 10)
        ],
        edges=[(0, 1)], num_neighbors=6, num_removals=16,
        effects=[
            EffectView(id="node-5", row=5, type=None, kind="label", change=-0.2, becomes=int(second[3])),
            EffectView(
                id="node-3", row=3, type=None, kind="features", change=0.1, becomes=int(predicted[3])
            ),
        ],
    )  # fmt: skip
    sections = {
        "overview": overview,
        "curves": [curve],
        "classes": Classes(
            nodes=f"{nodes:,} test nodes", scores=class_scores, order=list(range(size)), confusion=confusion,
            pairs=[(0, 1, int(confusion[0, 1]))], labels=similarity,
        ),
        "map": MapPoints(
            words="made up", rows=Array.of(rows, "u4"),
            points=Array.of(0.5 + 0.3 * centers[y[rows]] + draw.normal(0, 0.04, (len(rows), 2)), "f4"),
        ),
        "node": [explained],
        "reliability": Reliability(
            nodes=f"{nodes:,} test nodes", ece=0.03, brier=0.2,
            confidence=bands.by_confidence(confidence, correct),
            high_confidence=bands.by_confidence(confidence, correct, low=0.9),
            degree=bands.by_degree(draw.integers(0, 40, nodes), confidence, correct),
            homophily=bands.by_homophily(draw.random(nodes), confidence, correct),
            distance=bands.by_distance(draw.integers(-1, 8, nodes), confidence, correct),
        ),
        "labels": labels,
    }  # fmt: skip
    return RunPayload(
        name=name,
        title="GCN, enhanced labels",
        kind="run",
        data=DataFacts(name=data, nodes=nodes, classes=size, edges=5 * nodes, split_percent=[10.0, 10.0, 80.0]),
        classes=classes,
        nodes=node_columns,
        sections=sections,
    )


def made_up_labels(count: int = 300, rows: int = 400) -> SuspiciousLabels:
    """Returns labels that look wrong, of the last nodes first; the page does not have the node of the first one."""
    return SuspiciousLabels(
        total=rows,
        rows=[
            SuspiciousLabel(
                id=f"node-{rows - k}", row=rows - k if k else -1, label=k % 4, suggested=(k + 1) % 4, split="train",
                score=1 - k / count, p_label=0.1, p_suggested=0.8, neighbors=5.0, neighbors_label=1.0,
                neighbors_suggested=3.0,
            )
            for k in range(count)
        ],
    )  # fmt: skip


def made_up_page(*runs: RunPayload) -> Page:
    """Returns the page of runs."""
    differing = {"model.backbone": ["gcn"] * len(runs)} if len(runs) > 1 else {}
    sections = {name: section.title for name, section in SECTIONS.items() if runs[0].sections[name] is not None}
    return Page(version="0", sections=sections, runs=list(runs), differing=differing)
