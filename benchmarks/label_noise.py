"""Planted label errors: how well rankings of suspicious labels find them.

    python -m benchmarks.label_noise compute --out FOLDER --jobs 12
    python -m benchmarks.label_noise report --out FOLDER

`compute` flips labels and cross-fits probabilities, a file for each case, and goes on where it was interrupted;
`report` prints Markdown tables of average precision and of precision at the number planted, mean ± deviation over
seeds. It needs cleanlab, `compute` does not; both need the graphs.

Of every split, a part of the labels is flipped (`--rates`): to another class drawn uniformly (`uniform`), or to the
class whose mean features are the closest (`similar`). Validation and test labels are flipped as well, as nobody has
clean ones of data that are to be checked; what is ranked and scored are the training labels. debian has its own split;
the other graphs are split 60/20/20, cora too, whose public split has 140 training labels.

The weight of the perceptron was chosen on other graphs:

    python -m benchmarks.label_noise compute --out OTHERS --graphs amazon-computers,pubmed,citeseer,actor,digits
    python -m benchmarks.label_noise choose --out OTHERS --graphs amazon-computers,pubmed,citeseer,actor,digits

`own` ranks a graph's own training labels, without planted errors, by the mean of the same probabilities. None depends
on a node's own label, planted or not; the models were trained with planted errors among the others, though:

    python -m benchmarks.label_noise own --out FOLDER --graphs debian --kinds uniform --rates 0.05
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.metrics import average_precision_score

from benchmarks.pool import map_in_processes
from benchmarks.regimes import load_split
from legnn.cli.options import parse_settings
from legnn.cli.processes import stop_on_signal
from legnn.config import Settings
from legnn.data import GraphData
from legnn.errors import Interrupted, LegnnError
from legnn.files import atomic_write
from legnn.labels.check import perceptron, rank_labels
from legnn.labels.confident import calibrate, probability_right
from legnn.labels.cross_fitted import cross_fitted_probabilities
from legnn.labels.evidence import FEATURES_WEIGHT, combine_evidence, count_neighbor_labels

OWN_SPLIT = ("debian",)
"""Graphs with a split of their own that has many labels; the others are split 60/20/20."""
LEVELS = 65535
"""Probabilities are stored as multiples of its inverse, those of given labels as they are."""
NEGLIGIBLE = 1e-4
"""Smaller probabilities of other classes are stored as zero, which takes no space."""


class Case(NamedTuple):
    """One graph with planted errors."""

    out: Path
    graph: str
    kind: str
    rate: float
    seed: int
    folds: int
    repeats: int
    model_settings: tuple[tuple[str, Any], ...]

    @property
    def path(self) -> Path:
        return self.out / f"{self.graph}-{self.kind}-{self.rate:g}-{self.seed}.npz"


def similar_classes(graph: GraphData) -> np.ndarray:
    """`[C]` the class with the closest mean features, by cosine, of each class."""
    labeled = graph.y >= 0
    total = torch.zeros(graph.num_classes, graph.num_features).index_add_(0, graph.y[labeled], graph.x[labeled])
    size = torch.bincount(graph.y[labeled], minlength=graph.num_classes).clamp(min=1)
    mean = total / size[:, None]
    unit = torch.nn.functional.normalize(mean - mean.mean(0), dim=1)
    return (unit @ unit.T).fill_diagonal_(-torch.inf).argmax(1).numpy()


def plant(graph: GraphData, kind: str, rate: float, seed: int) -> tuple[GraphData, np.ndarray]:
    """Returns the graph with labels flipped, and which they are, `[M]` bool."""
    rng = np.random.default_rng([seed, round(1000 * rate), kind == "similar"])
    y, flipped = graph.y.numpy().copy(), np.zeros(graph.num_nodes, dtype=bool)
    for mask in (graph.train_mask, graph.val_mask, graph.test_mask):
        nodes = np.flatnonzero(mask.numpy())
        flipped[rng.choice(nodes, round(rate * len(nodes)), replace=False)] = True
    if kind == "uniform":
        y[flipped] = (y[flipped] + rng.integers(1, graph.num_classes, flipped.sum())) % graph.num_classes
    else:
        y[flipped] = similar_classes(graph)[y[flipped]]
    # the stored fingerprint of a prepared folder is of its own labels
    return replace(graph, y=torch.from_numpy(y), provenance=replace(graph.provenance, fingerprint="")), flipped


def load_clean(case: Case) -> tuple[GraphData, Settings]:
    """Returns the graph without planted errors, and the settings of the model."""
    regime = "public" if case.graph in OWN_SPLIT else "many"
    return load_split(
        case.graph, regime, case.seed, Settings(values={**dict(case.model_settings), "train.seed": case.seed})
    )


def load_case(case: Case) -> tuple[GraphData, np.ndarray, Settings]:
    """Returns the graph with planted errors, which they are, `[M]` bool, and the settings of the model."""
    clean, settings = load_clean(case)
    return *plant(clean, case.kind, case.rate, case.seed), settings


def compute_case(case: Case) -> str | None:
    """Cross-fits the model and a perceptron and writes the file; returns why it could not, if it could not."""
    begin = time.perf_counter()
    content: dict[str, np.ndarray] = {}
    try:
        graph, _, settings = load_case(case)
        for name, chosen in {"model": settings, "mlp": perceptron(settings)}.items():
            p = cross_fitted_probabilities(graph, {name: chosen}, folds=case.folds, repeats=case.repeats)[name]
            content |= _pack(name, p[graph.train_mask.numpy()], graph.y[graph.train_mask].numpy())
            content[f"{name}_seconds"] = np.array(time.perf_counter() - begin)
    except Interrupted:
        return "interrupted"
    except LegnnError as error:
        return str(error)
    with atomic_write(case.path) as file:
        np.savez_compressed(file, **content)
    return None


def normalized_margin(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """`[n]` `p[i, y_i] − max_{c ≠ y_i} p[i, c]`, from 1 for a label beyond doubt to −1."""
    rows = np.arange(len(labels))
    others = p.copy()
    others[rows, labels] = -np.inf
    return p[rows, labels] - others.max(1)


def _pack(name: str, p: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    label_p = p[np.arange(len(labels)), labels]
    return {
        f"{name}_p": np.rint(np.where(p < NEGLIGIBLE, 0, p) * LEVELS).astype(np.uint16),
        f"{name}_own": label_p.astype(np.float32),
        f"{name}_margin": normalized_margin(p, labels).astype(np.float32),
    }


def compute(cases: Sequence[Case], jobs: int, seconds: float) -> None:
    """Computes the cases that have no file, `jobs` at a time, and stops after `seconds` or on a signal."""
    missing = [case for case in cases if not case.path.is_file()]
    began = time.monotonic()
    with stop_on_signal() as is_asked:
        is_over = lambda: is_asked() or time.monotonic() - began > seconds  # noqa: E731
        for case, error in map_in_processes(compute_case, missing, min(jobs, max(len(missing), 1)), is_over):
            words = "done" if error is None else f"failed: {str(error)[:200]}"
            print(f"{time.monotonic() - began:6.0f} s {case.path.stem} {words}", flush=True)


class Evidence(NamedTuple):
    """What a case's file and graph say of the training labels."""

    labels: np.ndarray
    planted: np.ndarray
    model: np.ndarray
    mlp: np.ndarray
    margins: dict[str, np.ndarray]
    neighbors: np.ndarray


def read_case(case: Case) -> Evidence:
    """Returns the evidence on the training labels of a case."""
    graph, flipped, _ = load_case(case)
    rows = graph.train_mask.numpy()
    labels = graph.y.numpy()[rows]
    probabilities, margins = {}, {}
    with np.load(case.path) as file:
        for name in ("model", "mlp"):
            p = file[f"{name}_p"] / LEVELS
            p[np.arange(len(labels)), labels] = file[f"{name}_own"]
            probabilities[name], margins[name] = p, file[f"{name}_margin"].astype(float)
    neighbors = count_neighbor_labels(graph)[rows]
    return Evidence(labels, flipped[rows], probabilities["model"], probabilities["mlp"], margins, neighbors)


def rank_by_evidence(evidence: Evidence, weight: float = FEATURES_WEIGHT) -> np.ndarray:
    """`[n]` the probability that a label is right, by the weight of the perceptron."""
    q = combine_evidence(evidence.model, evidence.mlp, weight)
    return probability_right(calibrate(q, evidence.labels), evidence.labels)


def neighbor_agreement(evidence: Evidence) -> np.ndarray:
    """`[n]` the share of labeled neighbors with the same label; one half without any."""
    agreeing, every = evidence.neighbors[np.arange(len(evidence.labels)), evidence.labels], evidence.neighbors.sum(1)
    return np.where(every > 0, agreeing / np.maximum(every, 1e-12), 0.5)


def _cleanlab(p: np.ndarray, margin: np.ndarray, method: str) -> np.ndarray:
    """cleanlab's scores. It reads the probabilities of the label and of the most probable other class alone: these two
    columns give the scores of all of them, and they are stored without rounding."""
    from cleanlab.rank import get_label_quality_scores

    columns = np.stack([p, np.clip(p - margin, 0, 1)], 1)
    return np.asarray(get_label_quality_scores(np.zeros(len(p), dtype=int), columns, method=method))


def _of_cleanlab(source: str, method: str) -> Callable[[Evidence], np.ndarray]:
    def rank(evidence: Evidence) -> np.ndarray:
        p = evidence.model if source == "model" else evidence.mlp
        return _cleanlab(p[np.arange(len(evidence.labels)), evidence.labels], evidence.margins[source], method)

    return rank


METHODS: dict[str, Callable[[Evidence], np.ndarray]] = {
    "ours": rank_by_evidence,
    "cleanlab, confidence": _of_cleanlab("model", "self_confidence"),
    "cleanlab, margin": _of_cleanlab("model", "normalized_margin"),
    "cleanlab on MLP, confidence": _of_cleanlab("mlp", "self_confidence"),
    "cleanlab on MLP, margin": _of_cleanlab("mlp", "normalized_margin"),
    "neighbor disagreement": neighbor_agreement,
}
"""Each returns scores of which the lowest are the most suspicious."""


def precision_at_planted(planted: np.ndarray, score: np.ndarray) -> float:
    """The share of planted errors among as many of the most suspicious labels as there are planted ones."""
    number = int(planted.sum())
    return float(planted[np.argsort(score, kind="stable")[:number]].mean())


def report(cases: Sequence[Case]) -> None:
    """Prints a table for each measure: a row for each graph, kind and rate, a column for each method."""
    scores_of_case: dict[tuple[str, str, float], dict[str, list[tuple[float, float]]]] = {}
    for case in cases:
        if not case.path.is_file():
            print(f"{case.path.name} is missing\n")
            continue
        evidence = read_case(case)
        row = scores_of_case.setdefault((case.graph, case.kind, case.rate), {name: [] for name in METHODS})
        for name, rank in METHODS.items():
            score = rank(evidence)
            row[name].append(
                (average_precision_score(evidence.planted, -score), precision_at_planted(evidence.planted, score))
            )
    for k, title in enumerate(("Average precision", "Precision at the number planted")):
        print(f"{title}, in %\n\n| graph | flipped | {' | '.join(METHODS)} |\n|---|---|{'---:|' * len(METHODS)}")
        for (graph, kind, rate), row in scores_of_case.items():
            values = {name: 100 * np.array([pair[k] for pair in scores]) for name, scores in row.items()}
            best = max(value.mean() for value in values.values())
            cells = [_cell(value, is_best=value.mean() == best) for value in values.values()]
            print(f"| {graph} | {100 * rate:g} %, {kind} | {' | '.join(cells)} |")
        print()


def _cell(values: np.ndarray, *, is_best: bool) -> str:
    text = f"{values.mean():.1f} ± {values.std(ddof=1):.1f}" if len(values) > 1 else f"{values.mean():.1f}"
    return f"**{text}**" if is_best else text


WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def choose(cases: Sequence[Case]) -> None:
    """Prints the mean average precision of every weight of the perceptron, and the weight that loses least."""
    every = [read_case(case) for case in cases if case.path.is_file()]
    scores = np.array(
        [[average_precision_score(item.planted, -rank_by_evidence(item, w)) for w in WEIGHTS] for item in every]
    )
    print(f"mean average precision over {len(every)} cases, in %\n\n| weight | precision |\n|---|---:|")
    for weight, value in zip(WEIGHTS, scores.mean(0), strict=True):
        print(f"| {weight} | {100 * value:.2f} |")
    lost = (scores.max(1, keepdims=True) - scores).mean(0)
    print(f"\nleast below the best of each case: {WEIGHTS[int(lost.argmin())]}")


MOST_OWN = 100


def own_labels(cases: Sequence[Case]) -> None:
    """Prints the most suspicious of a graph's own training labels, by the mean evidence of the cases of each graph."""
    for name, some in itertools.groupby(cases, lambda case: case.graph):
        each = list(some)
        graph, _ = load_clean(each[0])
        total, times = np.zeros((graph.num_nodes, graph.num_classes)), np.zeros(graph.num_nodes)
        for case in each:
            evidence, rows = read_case(case), load_clean(case)[0].train_mask.numpy()
            total[rows] += combine_evidence(evidence.model, evidence.mlp)
            times[rows] += 1
        judged = torch.where(torch.from_numpy(times > 0), graph.y, -1)
        ranking = rank_labels(replace(graph, y=judged), total / np.maximum(times, 1)[:, None], each[0].folds)
        print(f"{name}: {MOST_OWN} of {len(ranking.table)} labels; about {ranking.expected_errors:.0f} may be wrong\n")
        print(ranking.table[["id", "label", "suggested", "p_label", "p_suggested"]].head(MOST_OWN).to_string())


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    model_settings = tuple(parse_settings(options.set).items())
    graphs, kinds = options.graphs.split(","), options.kinds.split(",")
    rates = [float(rate) for rate in options.rates.split(",")]
    for graph, kind, rate, seed in itertools.product(graphs, kinds, rates, range(options.seeds)):
        yield Case(options.out, graph, kind, rate, seed, options.folds, options.repeats, model_settings)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("compute", "report", "choose", "own"))
    parser.add_argument("--out", type=Path, required=True, help="folder of the cases' files")
    parser.add_argument("--graphs", default="debian,coauthor-cs,amazon-photo,cora", help="the largest first")
    parser.add_argument("--rates", default="0.05,0.1")
    parser.add_argument("--kinds", default="uniform,similar")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=2, help="divisions into folds that are averaged")
    model = ["model.backbone=gcn", "self_training.as_train=false"]
    parser.add_argument("--set", nargs="*", default=model, help="settings of the model")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args(arguments)
    cases = list(_cases(options))
    if options.command == "compute":
        compute(cases, options.jobs, options.seconds)
    else:
        {"report": report, "choose": choose, "own": own_labels}[options.command](cases)


if __name__ == "__main__":
    # worker processes find functions by the name of their module
    from benchmarks.label_noise import main as importable

    importable()
