"""Ways to choose the nodes that are labeled next, as `benchmarks.active_learning` compares them.

| strategy | what it takes |
|---|---|
| `ours` | `legnn labels next`; `ours:reach=0.3,uncertainty=1` with other weights |
| `random` | any nodes |
| `uncertainty` | the largest entropy |
| `degree`, `pagerank` | the largest degree, or PageRank |
| `age` | AGE (Cai et al. 2017): percentiles of entropy, of nearness to a center of k-means and of PageRank, whose weight is drawn and falls with the labels |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from legnn.data import GraphData
from legnn.data.splits import TEST, TRAIN
from legnn.labels.acquisition import pick_labels, uncertainty_of, unlabeled
from legnn.labels.coverage import Weights, to_scipy, travel_matrix

AGE_BASE = 0.995
"""Of AGE's authors: the weight of centrality is drawn from Beta(1, 1.005 - base^t) after `t` labels."""


class Situation:
    """What a strategy may look at: the graph whose other labels are hidden, and what a model makes of it.

    `z` `[M, D]` are features smoothed over the graph, `represent()` `[M, D]` the representations of the model.
    """

    def __init__(
        self,
        graph: GraphData,
        p: Tensor,
        z: np.ndarray,
        represent: Callable[[], np.ndarray],
        rng: np.random.Generator,
    ) -> None:
        self.graph, self.p, self.z, self.represent, self.rng = graph, p, z, represent, rng
        self.pool = unlabeled(graph)

    @cached_property
    def entropy(self) -> np.ndarray:
        return uncertainty_of(self.p)[self.pool]

    @cached_property
    def degree(self) -> np.ndarray:
        return self.graph.adjacency.degree.numpy()[self.pool]

    @cached_property
    def pagerank(self) -> np.ndarray:
        """With a damping of 0.85."""
        back = travel_matrix(to_scipy(self.graph.adjacency)).T.tocsr()
        number = self.graph.num_nodes
        rank = np.full(number, 1 / number)
        for _ in range(60):
            rank = 0.85 * (back @ rank) + 0.15 / number
        return rank[self.pool]

    @cached_property
    def nearness(self) -> np.ndarray:
        """`1 / (1 + d)` to the nearest center of as many clusters as there are classes."""
        hidden = self.represent()
        clusters = KMeans(self.graph.num_classes, n_init=1, random_state=0).fit(hidden)
        return 1 / (1 + clusters.transform(hidden).min(1))[self.pool]


def largest(score: np.ndarray, at: Situation, number: int) -> np.ndarray:
    return at.pool[np.argsort(-score, kind="stable")[:number]]


def percentile(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable") / len(values)


def age(at: Situation, number: int) -> np.ndarray:
    """One node after another, each with a weight of centrality drawn for it."""
    informativeness = percentile(at.entropy) + percentile(at.nearness)
    central = percentile(at.pagerank)
    labels = int(at.graph.train_mask.sum())
    free = np.ones(len(at.pool), dtype=bool)
    for asked in range(number):
        weight = at.rng.beta(1, 1.005 - AGE_BASE ** (labels + asked))
        score = np.where(free, (1 - weight) / 2 * informativeness + weight * central, -1)
        free[score.argmax()] = False
    return at.pool[~free]


def ours(at: Situation, number: int, weights: Weights) -> np.ndarray:
    return pick_labels(at.graph, at.p, number, z=at.z, weights=weights).nodes


Strategy = Callable[[Situation, int], np.ndarray]

STRATEGIES: dict[str, Strategy] = {
    "random": lambda at, number: at.rng.choice(at.pool, number, replace=False),
    "uncertainty": lambda at, number: largest(at.entropy, at, number),
    "degree": lambda at, number: largest(at.degree, at, number),
    "pagerank": lambda at, number: largest(at.pagerank, at, number),
    "age": age,
}


def strategy_of(name: str) -> Strategy:
    """The strategy of a name, `ours` with the weights that it gives."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    kind, _, options = name.partition(":")
    if kind != "ours":
        raise SystemExit(f"there is no strategy {name!r}; choose from ours, {', '.join(STRATEGIES)}")
    parts = (option.split("=") for option in options.split(",") if option)
    weights = replace(Weights(), **{key: int(value) if key == "hops" else float(value) for key, value in parts})
    return lambda at, number: ours(at, number, weights)


def hide_labels(graph: GraphData, labeled: np.ndarray, test: np.ndarray) -> GraphData:
    """The graph with the labels of `labeled` for training, those of `test` for its scores, and no other."""
    train, held = (torch.zeros(graph.num_nodes, dtype=torch.bool) for _ in range(2))
    train[labeled], held[test] = True, True
    y = graph.y.masked_fill(~(train | held), -1)
    split = TRAIN * train.to(torch.int8) + TEST * held.to(torch.int8)
    return replace(graph, y=y, split=split, provenance=replace(graph.provenance, fingerprint=""))
