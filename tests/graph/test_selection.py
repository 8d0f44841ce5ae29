"""Training node selection: the two parts, and how large they are."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from legnn.errors import InputError
from legnn.graph import select_training_nodes
from legnn.graph.selection import check_selection


def select(count: int, rate: float, seed: int = 0):
    nodes = torch.randperm(3 * count + 1, generator=torch.Generator().manual_seed(99))[:count]
    return nodes, select_training_nodes(nodes, rate, torch.Generator().manual_seed(seed))


@given(count=st.integers(0, 2000), decimal=st.decimals("0.001", "1", places=3))
def test_the_predicted_are_the_floor_of_alpha_times_the_labeled(count, decimal):
    _, selection = select(count, float(decimal))
    assert len(selection.predicted) == math.floor(Fraction(decimal) * count)


@pytest.mark.parametrize("rate", ["0.1", "0.3", "0.5", "0.7", "0.9", "0.29", "0.57", "0.58", "1"])
def test_the_floor_is_that_of_the_rate_as_written(rate):
    for count in range(300):
        _, selection = select(count, float(rate))
        assert len(selection.predicted) == math.floor(Fraction(rate) * count), count


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2, 3), Fraction(1, 7)])
def test_a_rate_that_is_no_decimal_is_meant_exactly(rate):
    for count in range(300):
        _, selection = select(count, float(rate))
        assert len(selection.predicted) == math.floor(rate * count), count


@given(count=st.integers(0, 200), rate=st.floats(0.01, 1), seed=st.integers(0, 5))
def test_a_node_is_predicted_or_shows_its_label_and_never_both(count, rate, seed):
    nodes, (predicted, shown) = select(count, rate, seed)
    assert not set(predicted.tolist()) & set(shown.tolist())
    assert sorted(predicted.tolist() + shown.tolist()) == sorted(nodes.tolist())


def test_the_seed_alone_decides_who_is_predicted():
    _, first = select(50, 0.5, seed=3)
    _, again = select(50, 0.5, seed=3)
    _, other = select(50, 0.5, seed=4)
    assert torch.equal(first.predicted, again.predicted)
    assert torch.equal(first.shown, again.shown)
    assert set(first.predicted.tolist()) != set(other.predicted.tolist())


def test_every_epoch_draws_anew():
    generator = torch.Generator().manual_seed(0)
    nodes = torch.arange(50)
    drawn = [frozenset(select_training_nodes(nodes, 0.5, generator).predicted.tolist()) for _ in range(5)]
    assert len(set(drawn)) == 5


def test_every_training_node_is_predicted_about_as_often_as_the_rate_says():
    generator = torch.Generator().manual_seed(0)
    times = torch.zeros(20)
    for _ in range(2000):
        times[select_training_nodes(torch.arange(20), 0.3, generator).predicted] += 1
    assert times.sum() == 2000 * 6
    assert (times / 2000 - 0.3).abs().max() < 0.05


def test_the_global_random_state_has_no_part_in_it():
    before = torch.get_rng_state()
    select(50, 0.5)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_rate_that_leaves_nothing_to_predict_is_refused_with_one_that_would_do():
    with pytest.raises(InputError, match=r"alpha = 0\.01 of 20 training nodes .*at least 0\.05, or more"):
        check_selection(20, 0.01)
    check_selection(20, 0.05)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("count", [2, 500, 100_000])
def test_on_a_gpu_the_draw_is_made_there_and_nobody_waits_for_it(count):
    nodes = torch.arange(count, device="cuda") * 3
    first, again = (torch.Generator("cuda").manual_seed(1) for _ in range(2))
    select_training_nodes(nodes, 0.5, torch.Generator("cuda"))
    torch.cuda.set_sync_debug_mode("error")
    try:
        predicted, shown = select_training_nodes(nodes, 0.5, first)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert sorted(predicted.tolist() + shown.tolist()) == nodes.tolist()
    assert torch.equal(predicted, select_training_nodes(nodes, 0.5, again).predicted)
    assert not torch.equal(predicted, select_training_nodes(nodes, 0.5, again).predicted)
