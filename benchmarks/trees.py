"""Boosted trees of scikit-learn and of LightGBM on the same rows: validation accuracy, and time to fit on one thread.

    OMP_NUM_THREADS=1 python -m benchmarks.trees --data cora:few chameleon-filtered:public actor:public --seeds 3

The rows are those of `NeighborFeatures` with all training labels shown, the settings those of the candidates of
`legnn auto`. Seconds are processor time, which other processes of a busy machine change little. Test labels are never
read. Needs `pip install lightgbm`.
"""

from __future__ import annotations

import argparse
import time
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.regimes import load_split
from legnn.baselines.boosted_trees import BoostedTrees
from legnn.config import Settings
from legnn.config.candidates import CANDIDATES
from legnn.config.model import ModelSettings
from legnn.data import GraphData
from legnn.graph import LabelGraph
from legnn.nn import DataShape

NAMES = ("boosted-trees", "boosted-trees-small")


class Rows(NamedTuple):
    """What trees are fitted to, and scored on."""

    train: np.ndarray
    y: np.ndarray
    val: np.ndarray
    y_val: np.ndarray


def rows_of(graph: GraphData, model: BoostedTrees) -> Rows:
    """`[n, 3 F + C]` of the training and of the validation nodes, without columns that are the same in training."""
    train, val = (mask.nonzero().flatten() for mask in (graph.train_mask, graph.val_mask))
    shown = LabelGraph.without_labels(graph.adjacency, graph.num_classes, node_type=graph.node_type)
    model.fit_inputs(graph.x, graph.node_type)
    x = model.inputs(graph.x, node_type=graph.node_type).of(shown.show(train, graph.y[train]))
    columns = (x[train] != x[train[0]]).any(0).nonzero().flatten()
    parts = (x[train][:, columns], graph.y[train], x[val][:, columns], graph.y[val])
    return Rows(*(part.numpy() for part in parts))


def lightgbm_like(classifier: Any) -> Any:
    """LightGBM with the settings of scikit-learn's `classifier`; what that does not have is left as it is."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=classifier.max_iter,
        learning_rate=classifier.learning_rate,
        num_leaves=classifier.max_leaf_nodes,
        min_child_samples=classifier.min_samples_leaf,
        max_bin=classifier.max_bins,
        random_state=classifier.random_state,
        n_jobs=1,
        verbose=-1,
    )


def measure(classifier: Any, rows: Rows) -> tuple[float, float]:
    """The accuracy on validation in percent, and the seconds that fitting takes."""
    start = time.process_time()
    classifier.fit(rows.train, rows.y)
    seconds = time.process_time() - start
    return 100 * float((classifier.predict(rows.val) == rows.y_val).mean()), seconds


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora:few", "chameleon-filtered:public", "actor:public"])
    parser.add_argument("--candidates", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    table = Table("data", "split", "candidate", "trees of", "validation, %", "of each seed", "s", box=box.MARKDOWN)
    for name in args.data:
        data, regime = name.split(":")
        for candidate in args.candidates:
            for library, results in compare(data, regime, candidate, args.seeds).items():
                accuracy, seconds = zip(*results, strict=True)
                each = " ".join(f"{one:.1f}" for one in accuracy)
                table.add_row(data, regime, candidate, library, f"{mean(accuracy):.2f}", each, f"{mean(seconds):.1f}")
    Console(width=140).print(table)


def compare(data: str, regime: str, candidate: str, seeds: int) -> dict[str, list[tuple[float, float]]]:
    """Accuracy and seconds of each library for each seed."""
    results: dict[str, list[tuple[float, float]]] = {"scikit-learn": [], "LightGBM": []}
    for seed in range(seeds):
        graph, _ = load_split(data, regime, seed, Settings(given={}))
        torch.manual_seed(seed)
        settings = ModelSettings(**CANDIDATES[candidate].values)
        model = BoostedTrees(settings, DataShape(graph.num_features, graph.num_classes, graph.num_types))
        rows = rows_of(graph, model)
        classifier = model.classifier(len(rows.train))
        # the second is made of the settings of the first, before that is fitted
        for library, one in zip(results, (classifier, lightgbm_like(classifier)), strict=True):
            results[library].append(measure(one, rows))
    return results


if __name__ == "__main__":
    main()
