"""Splits of the accuracy benchmarks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.regimes import FEW_A_CLASS, MOST_TEST, with_regime
from tests.graphs import small_data

from legnn import load


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def masks(graph) -> list[np.ndarray]:
    return [mask.numpy() for mask in (graph.train_mask, graph.val_mask, graph.test_mask)]


@pytest.mark.parametrize("regime", ["many", "few"])
@pytest.mark.parametrize("seed", [0, 1])
def test_splits_do_not_overlap_and_follow_the_seed(digits, regime, seed):
    train, val, test = masks(with_regime(digits, regime, seed))
    assert not (train & val).any()
    assert not ((train | val) & test).any()
    assert (train | val | test).all(), "all nodes of digits have a class"
    for mine, again in zip((train, val, test), masks(with_regime(digits, regime, seed)), strict=True):
        assert (mine == again).all()
    assert (train != masks(with_regime(digits, regime, seed + 1))[0]).any()


def test_many_is_60_20_20_and_few_20_a_class_with_500_for_validation(digits):
    train, val, test = (mask.mean() for mask in masks(with_regime(digits, "many", 0)))
    assert (round(train, 2), round(val, 2), round(test, 2)) == (0.6, 0.2, 0.2)
    train, val, _ = masks(with_regime(digits, "few", 0))
    assert np.bincount(digits.y.numpy()[train]).tolist() == [FEW_A_CLASS] * 10
    assert val.sum() == 500


def test_of_a_small_class_half_is_for_training(digits):
    y = torch.where(torch.arange(len(digits.y)) < 6, 0, digits.y.clamp(min=1))
    train = masks(with_regime(replace(digits, y=y), "few", 0))[0]
    assert train[y.numpy() == 0].sum() == 3


def test_the_public_split_is_left_as_it_is(digits):
    for mine, own in zip(masks(with_regime(digits, "public", 3)), masks(digits), strict=True):
        assert (mine == own).all()


def test_of_very_many_test_nodes_of_the_public_split_some_are_drawn():
    graph = load(small_data(6 * MOST_TEST))
    before = masks(graph)
    assert before[2].sum() > MOST_TEST
    train, val, test = masks(with_regime(graph, "public", 3))
    assert test.sum() == MOST_TEST
    assert not (test & ~before[2]).any()
    assert (train == before[0]).all()
    assert (val == before[1]).all()
