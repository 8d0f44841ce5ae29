"""Rankings of suspicious labels beside each other, on the cases of `benchmarks.label_noise`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from sklearn.metrics import average_precision_score

from benchmarks.label_noise import LEVELS, Case, load_case, load_clean
from benchmarks.neighbor_likelihood import neighbor_likelihood, weigh
from legnn.labels.check import rank_labels
from legnn.labels.confident import calibrate, probability_right
from legnn.labels.evidence import FEATURES_WEIGHT, combine_evidence
from legnn.labels.neighbor_labels import count_neighbor_labels


class Evidence(NamedTuple):
    """What a case's file and graph say of the training labels."""

    given: np.ndarray
    planted: np.ndarray
    model: np.ndarray
    mlp: np.ndarray
    margins: dict[str, np.ndarray]
    neighbors: np.ndarray
    likelihood: np.ndarray


def read_case(case: Case) -> Evidence:
    """Returns the evidence on the training labels of a case."""
    graph, flipped, _ = load_case(case)
    rows = graph.train_mask.numpy()
    given = graph.y.numpy()[rows]
    found, margins = {}, {}
    with np.load(case.path) as file:
        for name in ("model", "mlp"):
            p = file[f"{name}_p"] / LEVELS
            p[np.arange(len(given)), given] = file[f"{name}_own"]
            found[name], margins[name] = p, file[f"{name}_margin"].astype(float)
    around, likelihood = count_neighbor_labels(graph)[rows], neighbor_likelihood(graph, case.folds)[rows]
    return Evidence(given, flipped[rows], found["model"], found["mlp"], margins, around, likelihood)


def rank_by_evidence(one: Evidence, features: float = FEATURES_WEIGHT, neighbors: float = 0.0) -> np.ndarray:
    """`[n]` ours, by the weights of features and of neighbors: the probability that a label is right."""
    q = weigh(combine_evidence(one.model, one.mlp, features), one.likelihood, neighbors)
    return probability_right(calibrate(q, one.given), one.given)


def neighbor_agreement(one: Evidence) -> np.ndarray:
    """`[n]` the share of labeled neighbors with the same label; one half without any."""
    own, every = one.neighbors[np.arange(len(one.given)), one.given], one.neighbors.sum(1)
    return np.where(every > 0, own / np.maximum(every, 1e-12), 0.5)


def _cleanlab(p: np.ndarray, margin: np.ndarray, method: str) -> np.ndarray:
    """cleanlab's scores. It reads the probabilities of the label and of the most probable other class alone: these two
    columns give the scores of all of them, and they are stored without rounding."""
    from cleanlab.rank import get_label_quality_scores

    columns = np.stack([p, np.clip(p - margin, 0, 1)], 1)
    return np.asarray(get_label_quality_scores(np.zeros(len(p), dtype=int), columns, method=method))


def _of_cleanlab(source: str, method: str) -> Callable[[Evidence], np.ndarray]:
    def rank(one: Evidence) -> np.ndarray:
        p = one.model if source == "model" else one.mlp
        return _cleanlab(p[np.arange(len(one.given)), one.given], one.margins[source], method)

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
    found: dict[tuple[str, str, float], dict[str, list[tuple[float, float]]]] = {}
    for case in cases:
        if not case.path.is_file():
            print(f"{case.path.name} is missing\n")
            continue
        one = read_case(case)
        row = found.setdefault((case.graph, case.kind, case.rate), {name: [] for name in METHODS})
        for name, rank in METHODS.items():
            score = rank(one)
            row[name].append((average_precision_score(one.planted, -score), precision_at_planted(one.planted, score)))
    for k, title in enumerate(("Average precision", "Precision at the number planted")):
        print(f"{title}, in %\n\n| graph | flipped | {' | '.join(METHODS)} |\n|---|---|{'---:|' * len(METHODS)}")
        for (graph, kind, rate), row in found.items():
            values = {name: 100 * np.array([one[k] for one in scores]) for name, scores in row.items()}
            best = max(value.mean() for value in values.values())
            cells = [_cell(value, is_best=value.mean() == best) for value in values.values()]
            print(f"| {graph} | {100 * rate:g} %, {kind} | {' | '.join(cells)} |")
        print()


def _cell(values: np.ndarray, *, is_best: bool) -> str:
    text = f"{values.mean():.1f} ± {values.std(ddof=1):.1f}" if len(values) > 1 else f"{values.mean():.1f}"
    return f"**{text}**" if is_best else text


FEATURE_WEIGHTS, NEIGHBOR_WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0), (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.9)


def choose(cases: Sequence[Case]) -> None:
    """Prints the mean average precision of every pair of weights, and the pair that is the least below the best."""
    every = [read_case(case) for case in cases if case.path.is_file()]
    pairs = list(itertools.product(FEATURE_WEIGHTS, NEIGHBOR_WEIGHTS))
    scores = np.array(
        [[average_precision_score(one.planted, -rank_by_evidence(one, f, n)) for f, n in pairs] for one in every]
    )
    mean = scores.mean(0).reshape(len(FEATURE_WEIGHTS), -1)
    print(f"mean average precision over {len(every)} cases, in %; features by row, neighbors by column\n")
    print(f"| | {' | '.join(map(str, NEIGHBOR_WEIGHTS))} |\n|---|{'---:|' * len(NEIGHBOR_WEIGHTS)}")
    for weight, row in zip(FEATURE_WEIGHTS, mean, strict=True):
        print(f"| {weight} | {' | '.join(f'{100 * value:.2f}' for value in row)} |")
    lost = (scores.max(1, keepdims=True) - scores).mean(0)
    features, neighbors = pairs[int(lost.argmin())]
    print(f"\nleast below the best of each case: features={features}, neighbors={neighbors}")


MOST_OWN = 100


def own(cases: Sequence[Case]) -> None:
    """Prints the most suspicious of a graph's own training labels, by the mean evidence of the cases of each graph."""
    for name, some in itertools.groupby(cases, lambda case: case.graph):
        each = list(some)
        graph, _ = load_clean(each[0])
        total, times = np.zeros((graph.num_nodes, graph.num_classes)), np.zeros(graph.num_nodes)
        for case in each:
            one, rows = read_case(case), load_clean(case)[0].train_mask.numpy()
            total[rows] += combine_evidence(one.model, one.mlp)
            times[rows] += 1
        judged = torch.where(torch.from_numpy(times > 0), graph.y, -1)
        found = rank_labels(replace(graph, y=judged), total / np.maximum(times, 1)[:, None], each[0].folds)
        print(
            f"{name}: {MOST_OWN} of {len(found.table)} labels; {found.expected_errors:.0f} are estimated to be wrong\n"
        )
        print(found.table[["id", "label", "suggested", "p_label", "p_suggested"]].head(MOST_OWN).to_string())
