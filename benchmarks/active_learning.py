"""Accuracy over labels that are asked for step by step, by the way in which the nodes are chosen.

    python -m benchmarks.active_learning compute --out active.jsonl --seeds 5 --first-seed 5 --jobs 12
    python -m benchmarks.active_learning report --out active.jsonl
    python -m benchmarks.active_learning choose --out chosen.jsonl --seeds 3 --jobs 2 --model legnn

Each seed draws a third of the nodes, at most 5,000, for test, and of the others 2 a class that are labeled at first,
for all strategies alike; no node is for validation. After each step the same small model is trained anew, all of its
epochs, and scored on the test nodes. Labels are those of 2, 4, … 20 nodes a class on average; random goes on to 40, to
see where it gets as far as the others. `benchmarks.acquisition` has the strategies.

`choose` compares weights of `ours` on other graphs. With `--model smooth`, its default, a logistic regression of
features smoothed over the graph is trained in the place of LEGNN, in milliseconds. The same command goes on after an
interruption.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from benchmarks.acquisition import STRATEGIES, Situation, hide_labels, strategy_of
from benchmarks.pool import map_in_processes
from benchmarks.regimes import DATA
from legnn.cli.processes import stop_on_signal
from legnn.config import ResolvedSettings, Settings
from legnn.data import GraphData
from legnn.labels.acquisition import smooth_features
from legnn.runs.graphs import load_new
from legnn.runs.progress import Callbacks
from legnn.runs.session import start_run

STEPS, RANDOM_STEPS = (2, 4, 6, 8, 12, 16, 20), (30, 40)
"""Labels a class; those after which random goes on alone."""
GRAPHS, OTHER_GRAPHS = ("coauthor-cs", "debian", "amazon-photo", "cora"), ("citeseer", "pubmed", "amazon-computers")
LR = 0.01
MOST_TEST = 5_000
GRID = [
    {"reach": reach, "uncertainty": uncertainty, "uncertain": uncertain, "width": width}
    for width in (0.1, 0.2, 0.5)
    for reach in (0.25, 0.5, 1)
    for uncertainty in (0.5, 1, 2)
    for uncertain in (0.5, 1)
]
Row = dict[str, Any]


class Job(NamedTuple):
    """One strategy with one seed on one graph, from the first step to the last."""

    data: str
    strategy: str
    seed: int
    model: str
    epochs: int


class Fitted(NamedTuple):
    """What a strategy sees of a model: probabilities `[M, C]`, and its representations when they are asked for."""

    p: Tensor
    represent: Callable[[], np.ndarray]


def fit_legnn(graph: GraphData, settings: ResolvedSettings, should_stop: Callable[[], bool]) -> Fitted:
    run = start_run(graph, settings, None, Callbacks(lambda log: None, should_stop))
    return Fitted(run.predict_graph(graph), lambda: run.representations(graph).nodes)


def fit_smooth(graph: GraphData, z: np.ndarray) -> Fitted:
    """A logistic regression of smoothed features: no neighbor's label, no training to speak of."""
    regression = LogisticRegression(C=10, max_iter=60, tol=1e-2).fit(z[graph.train_mask], graph.y[graph.train_mask])
    p = torch.zeros(graph.num_nodes, graph.num_classes, dtype=torch.float64)
    p[:, regression.classes_] = torch.from_numpy(regression.predict_proba(z)).double()
    return Fitted(p, lambda: z)


def first_labels(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes for test, and the first of each class of the others that are labeled."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(y >= 0))
    test, pool = np.split(order, [min(len(order) // 3, MOST_TEST)])
    return test, np.concatenate([pool[y[pool] == c][: STEPS[0]] for c in np.unique(y[order])])


def simulate(job: Job) -> list[Row]:
    """Returns a row for each step."""
    values = {**DATA.get(job.data, {}), "model.backbone": "gcn", "model.labels": "enhanced"}
    values |= {"train.epochs": job.epochs, "train.lr": LR}
    whole, settings = load_new(Settings(preset="simple", values={**values, "train.seed": job.seed}), job.data)
    y, z = whole.y.numpy(), smooth_features(whole)
    ask, rng = strategy_of(job.strategy), np.random.default_rng([job.seed, 1])
    test, labeled = first_labels(y, job.seed)
    resolved: ResolvedSettings | None = None
    situation: Situation | None = None
    rows = []
    for a_class in (*STEPS, *RANDOM_STEPS) if job.strategy == "random" else STEPS:
        begin = time.perf_counter()
        wanted = min(a_class * whole.num_classes, int((y >= 0).sum()) - len(test))
        if situation is not None:
            labeled = np.concatenate([labeled, ask(situation, wanted - len(labeled))])
        asked = time.perf_counter()
        graph = hide_labels(whole, labeled, test)
        resolved = resolved or settings.resolve(graph.facts()).override({"data.source": "memory"})
        fitted = fit_smooth(graph, z) if job.model == "smooth" else fit_legnn(graph, resolved, lambda: False)
        situation = Situation(graph, fitted.p, z, fitted.represent, rng)
        right = fitted.p[test].argmax(1).numpy() == y[test]
        seconds = {"ask": round(asked - begin, 3), "train": round(time.perf_counter() - asked, 3)}
        # classes that no label names cannot be predicted
        scores = {"labels": len(labeled), "classes": len(np.unique(y[labeled])), "accuracy": float(right.mean())}
        rows.append({**job._asdict(), "a_class": a_class, **scores, **seconds})
    return rows


def read_rows(out: Path) -> list[Row]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.is_file() else []


def compute(jobs: Sequence[Job], out: Path, processes: int) -> None:
    """Simulates what is missing, and appends its rows as they come."""
    done = {Job(*(row[name] for name in Job._fields)) for row in read_rows(out)}
    missing = [job for job in jobs if job not in done]
    began, ended = time.monotonic(), 0
    with stop_on_signal() as is_asked:
        for job, rows in map_in_processes(simulate, missing, processes, is_asked):
            ended += 1
            if isinstance(rows, BaseException):
                print(f"{job}: {rows}", flush=True)
                continue
            with out.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            if ended % 10 == 0 or ended == len(missing):
                print(f"{ended} of {len(missing)} after {time.monotonic() - began:.0f} s", flush=True)


class Curve(NamedTuple):
    """Accuracy of a strategy on a graph: `[seeds, steps]`, by labels a class."""

    a_class: np.ndarray
    accuracy: np.ndarray

    def areas(self) -> np.ndarray:
        """`[seeds]` the mean accuracy from the first to the last of `STEPS`."""
        shown = np.isin(self.a_class, STEPS)
        x, y = self.a_class[shown], self.accuracy[:, shown]
        return ((y[:, 1:] + y[:, :-1]) / 2 * np.diff(x)).sum(1) / (x[-1] - x[0])

    def labels_for(self, accuracy: float) -> float:
        """Labels a class at which the mean over the seeds first has this accuracy; infinity where it never has."""
        # noise makes a curve fall here and there: what it had once, it has
        mean = np.maximum.accumulate(self.accuracy.mean(0))
        if accuracy > mean[-1]:
            return float("inf")
        return float(np.interp(accuracy, mean, self.a_class)) if accuracy > mean[0] else float(self.a_class[0])

    def at(self, a_class: int) -> float:
        return float(self.accuracy.mean(0)[self.a_class == a_class][0])


def curves_of(rows: Sequence[Row]) -> dict[tuple[str, str], Curve]:
    """By graph and strategy, over the seeds that all of its steps have."""
    accuracies: dict[tuple[str, str], dict[int, dict[int, float]]] = {}
    for row in rows:
        seeds = accuracies.setdefault((row["data"], row["strategy"]), {})
        seeds.setdefault(row["seed"], {})[row["a_class"]] = row["accuracy"]
    return {
        key: Curve(np.array(sorted(steps := next(iter(seeds.values())))), np.array([
            [accuracy[step] for step in sorted(steps)] for _, accuracy in sorted(seeds.items())
        ]))
        for key, seeds in accuracies.items()
    }  # fmt: skip


def report(rows: Sequence[Row]) -> Iterator[str]:
    """A table for each graph: area and accuracies, and how many labels a class random needs for the same accuracy."""
    curves = curves_of(rows)
    for data in dict.fromkeys(data for data, _ in curves):
        of_graph = {strategy: curve for (name, strategy), curve in curves.items() if name == data}
        random = of_graph["random"]
        at = [step for step in STEPS if step in (4, 8, 12, 20)]
        yield f"\n**{data}**, {len(random.accuracy)} seeds\n"
        yield (
            "| strategy | area under the curve | "
            + " | ".join(f"at {step}" for step in at)
            + " |"
            + "".join(f" random for {step} |" for step in at)
        )
        yield "|---" * (2 + 2 * len(at)) + "|"
        for strategy, curve in sorted(of_graph.items(), key=lambda item: -item[1].areas().mean()):
            areas = curve.areas()
            needed = [random.labels_for(curve.at(step)) for step in at]
            words = [f"{n:.0f}" if np.isfinite(n) else f"> {RANDOM_STEPS[-1]}" for n in needed]
            deviation = f" ± {areas.std(ddof=1):.4f}" if len(areas) > 1 else ""
            cells = [f"{areas.mean():.4f}{deviation}", *(f"{curve.at(step):.4f}" for step in at), *words]
            yield f"| {strategy} | " + " | ".join(cells) + " |"
    yield "\nLabels are a class, on average. `random for 8`: labels a class with which random has the accuracy that the"
    yield "strategy has with 8."


def mean_areas(rows: Sequence[Row]) -> Iterator[str]:
    """Strategies by the mean of their areas over the graphs."""
    curves = curves_of(rows)
    graphs = list(dict.fromkeys(data for data, _ in curves))
    strategies = dict.fromkeys(strategy for _, strategy in curves)
    areas = {
        strategy: [curves[data, strategy].areas().mean() for data in graphs if (data, strategy) in curves]
        for strategy in strategies
    }
    yield "| strategy | mean | " + " | ".join(graphs) + " |"
    yield "|---" * (2 + len(graphs)) + "|"
    for strategy, means in sorted(areas.items(), key=lambda item: -np.mean(item[1])):
        yield f"| {strategy} | {np.mean(means):.4f} | " + " | ".join(f"{area:.4f}" for area in means) + " |"


def variant(weights: dict[str, float]) -> str:
    return "ours:" + ",".join(f"{name}={value}" for name, value in weights.items())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", choices=["compute", "report", "choose"])
    parser.add_argument("--out", type=Path, required=True, help="file of rows, .jsonl")
    parser.add_argument("--data", nargs="+", help="named data sets")
    parser.add_argument("--strategies", nargs="+", help="see benchmarks.acquisition")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--model", choices=["legnn", "smooth"], help="what is trained [choose: smooth, else legnn]")
    options = parser.parse_args(arguments)
    chooses = options.phase == "choose"
    if options.phase != "report":
        data = options.data or (OTHER_GRAPHS if chooses else GRAPHS)
        every = ["ours", *STRATEGIES] + ([variant(weights) for weights in GRID] if chooses else [])
        model = options.model or ("smooth" if chooses else "legnn")
        # graph by graph, the largest first: a process keeps the last graph
        jobs = [
            Job(name, strategy, seed, model, options.epochs)
            for name in data
            for seed in range(options.first_seed, options.first_seed + options.seeds)
            for strategy in options.strategies or every
        ]
        for job in jobs:
            strategy_of(job.strategy)
        compute(jobs, options.out, options.jobs)
    rows = read_rows(options.out)
    print("\n".join(mean_areas(rows) if chooses else [*report(rows), "", *mean_areas(rows)]))


if __name__ == "__main__":
    # worker processes find functions by the name of their module
    from benchmarks.active_learning import main as importable

    importable()
