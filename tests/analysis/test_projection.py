"""t-SNE and its picture."""

import numpy as np
import pytest

from legnn.analysis.projection import tsne
from legnn.errors import InputError


def clouds(channels: int, nodes: int = 60) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(nodes) % 3
    return 20 * np.eye(3, channels)[y] + np.random.default_rng(0).normal(size=(nodes, channels)), y


@pytest.mark.parametrize("channels", [3, 80])
def test_nodes_of_a_class_stay_together(channels):
    z, y = clouds(channels)
    points = tsne(z, seed=3, iterations=500)
    assert points.shape == (60, 2)
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    np.fill_diagonal(distance, np.inf)
    assert np.array_equal(y[distance.argmin(1)], y)
    assert np.array_equal(points, tsne(z, seed=3, iterations=500))


@pytest.mark.parametrize("shape", [(4, 1), (4, 60), (5, 2)])
def test_few_nodes_and_few_columns_are_projected(shape):
    points = tsne(np.random.default_rng(0).normal(size=shape), iterations=250)
    assert points.shape == (shape[0], 2)
    assert np.isfinite(points).all()


def test_equal_nodes_are_at_one_place():
    assert not tsne(np.ones((5, 3))).any()


def test_three_nodes_are_too_few():
    with pytest.raises(InputError, match="t-SNE needs at least 4 nodes, got 3"):
        tsne(np.zeros((3, 2)))
