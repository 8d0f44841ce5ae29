"""The paper's node clustering."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from legnn.analysis.clustering import choose_nodes, cluster
from legnn.errors import InputError


def points(y: np.ndarray, spread: float) -> np.ndarray:
    """A corner for each class, and noise."""
    return 10 * np.eye(5)[y] + spread * np.random.default_rng(0).normal(size=(len(y), 5))


def test_classes_that_are_apart_are_found_again():
    y = np.repeat(np.arange(5), 12)
    assert cluster(points(y, 0.1), y) == (1.0, 1.0)


def test_noise_is_not_found():
    y = np.arange(300) % 5
    found = cluster(np.random.default_rng(1).normal(size=(300, 4)), y)
    assert found.nmi < 0.1
    assert abs(found.ari) < 0.05


def test_the_adjusted_rand_index_is_that_of_counted_pairs():
    y = np.arange(90) % 3
    z = points(y, 5.0)
    from sklearn.cluster import KMeans

    labels = KMeans(3, n_init=10, random_state=4).fit_predict(z)
    same_class, same_cluster = (values[:, None] == values for values in (y, labels))
    upper = np.triu_indices(len(y), 1)
    both, one, other = (pairs[upper].sum() for pairs in (same_class & same_cluster, same_class, same_cluster))
    by_chance = one * other / len(upper[0])
    assert cluster(z, y, seed=4).ari == pytest.approx((both - by_chance) / ((one + other) / 2 - by_chance))
    assert 0 < cluster(z, y, seed=4).ari < 1


def test_points_that_collapsed_say_nothing_and_no_warning(recwarn):
    assert cluster(np.zeros((6, 2)), np.arange(6) % 2) == (0.0, 0.0)
    assert not recwarn.list


@pytest.mark.parametrize("count", [0, 3])
def test_fewer_than_two_classes_are_not_a_number(count):
    assert all(map(math.isnan, cluster(np.zeros((count, 2)), np.zeros(count))))


@given(arrays(np.int64, st.integers(0, 60), elements=st.integers(-1, 5)), st.data(), st.integers(1, 4))
def test_nodes_are_those_of_the_largest_classes(y, data, classes):
    eligible = data.draw(arrays(np.bool_, len(y)))
    chosen = choose_nodes(y, eligible, classes=classes, per_class=3)
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert eligible[chosen].all()
    sizes = sorted(((-int(((y == c) & eligible).sum()), c) for c in range(6)), key=lambda pair: pair)
    expected = {c: min(-size, 3) for size, c in sizes[:classes] if size < 0}
    assert {c: int((y[chosen] == c).sum()) for c in set(y[chosen].tolist())} == expected


def test_the_seed_draws_the_nodes_and_every_node_can_be_drawn():
    y = np.zeros(50, dtype=int)
    first, again, other = (choose_nodes(y, per_class=10, seed=seed).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert set().union(*(choose_nodes(y, per_class=10, seed=seed).tolist() for seed in range(60))) == set(range(50))


def test_the_papers_numbers_are_the_defaults():
    y = np.repeat(np.arange(12), np.arange(600, 480, -10))
    sizes = np.bincount(y[choose_nodes(y)])
    assert sizes.tolist() == [500] * 10


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(InputError, match="y has 3, eligible has 2"):
        choose_nodes(np.zeros(3, dtype=int), np.ones(2, dtype=bool))
