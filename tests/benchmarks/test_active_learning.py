"""The simulation of active learning: what strategies see, and what its tables say."""

import numpy as np
import pytest
import torch
from benchmarks.acquisition import STRATEGIES, Situation, hide_labels, strategy_of
from benchmarks.active_learning import Curve, first_labels, report
from tests.graphs import small_data

from legnn.data import GraphData
from legnn.labels.acquisition import smooth_features


@pytest.fixture
def situation():
    y = torch.arange(90) % 3
    test, labeled = first_labels(y.numpy(), 0)
    graph = hide_labels(GraphData.from_pyg(small_data(nodes=90, y=y)), labeled, test)
    z = smooth_features(graph)
    return Situation(graph, torch.full((90, 3), 1 / 3), z, lambda: z, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["ours", "ours:reach=0,hops=1", *STRATEGIES])
def test_a_strategy_asks_for_new_nodes_without_a_label(situation, name):
    asked = strategy_of(name)(situation, 7)
    assert len(set(asked.tolist())) == 7
    assert (situation.graph.y[asked] < 0).all()
    assert not (situation.graph.train_mask | situation.graph.test_mask)[asked].any()


def test_first_labels_are_two_a_class_and_none_for_test():
    y = np.arange(60) % 3
    test, labeled = first_labels(y, 0)
    assert np.bincount(y[labeled]).tolist() == [2, 2, 2]
    assert not set(test) & set(labeled)


def test_labels_for_an_accuracy_are_read_off_the_curve():
    curve = Curve(np.array([2, 4, 20]), np.array([[0.4, 0.6, 0.8], [0.4, 0.6, 0.8]]))
    assert curve.labels_for(0.5) == pytest.approx(3)
    assert curve.labels_for(0.7) == pytest.approx(12)
    assert curve.labels_for(0.9) == float("inf")
    assert curve.labels_for(0.1) == 2


def test_the_report_says_how_many_labels_random_needs():
    def rows(strategy, gain):
        steps = (2, 4, 6, 8, 12, 16, 20, *((30, 40) if strategy == "random" else ()))
        place = {"data": "some", "strategy": strategy}
        return [{**place, "seed": s, "a_class": n, "accuracy": 0.5 + gain * n} for s in (0, 1) for n in steps]

    text = "\n".join(report([*rows("random", 0.01), *rows("ours", 0.015), *rows("age", 0.024)]))
    assert "| ours |" in text
    assert "| 0.8000 | 6 | 12 | 18 | 30 |" in text
    assert "| 0.9800 | 10 | 19 | 29 | > 40 |" in text
