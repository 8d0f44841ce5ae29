"""The paper's label difference and graph difference."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from legnn.analysis.smoothness import graph_difference, label_differences, relative_graph_difference
from legnn.errors import InputError

CLASSES = 4


@st.composite
def labeled(draw):
    """Representations of integers, so that sums are exact, and classes of which some are unknown or have no nodes."""
    nodes, channels = draw(st.integers(1, 20)), draw(st.integers(1, 5))
    z = draw(arrays(np.float64, (nodes, channels), elements=st.integers(-50, 50)))
    return z, draw(arrays(np.int64, nodes, elements=st.integers(-1, CLASSES - 1)))


def plain(z, y, c):
    own = [row for row, label in zip(z.tolist(), y.tolist(), strict=True) if label == c]
    if not own:
        return math.nan
    center = [sum(column) / len(own) for column in zip(*own, strict=True)]
    return sum(math.dist(row, center) for row in own) / len(own)


@given(labeled())
def test_they_are_the_equations_written_out(given):
    z, y = given
    expected = [plain(z, y, c) for c in range(CLASSES)]
    np.testing.assert_allclose(label_differences(z, y, CLASSES), expected, rtol=1e-9)
    present = [value for value in expected if not math.isnan(value)]
    mean = sum(present) / len(present) if present else math.nan
    np.testing.assert_allclose(graph_difference(z, y, CLASSES), mean, rtol=1e-9)
    spread = plain(z[y >= 0], np.zeros((y >= 0).sum()), 0)
    relative = mean / spread if present and spread > 0 else math.nan
    np.testing.assert_allclose(relative_graph_difference(z, y, CLASSES), relative, rtol=1e-9)


@given(labeled(), st.sampled_from([0.25, 2.0, 1024.0]), st.integers(-9, 9))
def test_scaling_scales_gd_and_not_the_relative_form_and_moving_changes_neither(given, factor, step):
    z, y = given
    changed = factor * (z + step)
    np.testing.assert_allclose(
        graph_difference(changed, y, CLASSES), factor * graph_difference(z, y, CLASSES), rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(
        relative_graph_difference(changed, y, CLASSES), relative_graph_difference(z, y, CLASSES), rtol=1e-6, atol=1e-9
    )


@given(labeled(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_the_numbers_of_classes_do_not_matter(given, random):
    z, y = given
    order, names = random.sample(range(len(y)), len(y)), np.array([*random.sample(range(CLASSES), CLASSES), -1])
    for measure in (graph_difference, relative_graph_difference):
        np.testing.assert_allclose(measure(z[order], names[y][order], CLASSES), measure(z, y, CLASSES), rtol=1e-9)


def test_equal_vectors_differ_by_nothing_and_have_no_relative_form():
    z, y = np.full((6, 3), 2.5), np.arange(6) % 2
    assert graph_difference(z, y, 2) == 0
    assert math.isnan(relative_graph_difference(z, y, 2))


def test_classes_at_two_points_have_a_relative_form_of_zero_and_random_classes_of_about_one():
    y = np.arange(400) % 2
    assert relative_graph_difference(y[:, None].astype(float), y, 2) == 0
    noise = np.random.default_rng(0).normal(size=(400, 8))
    assert relative_graph_difference(noise, y, 2) == pytest.approx(1, abs=0.02)


def test_tensors_are_taken_as_well():
    z, y = torch.randn(9, 3, requires_grad=True), torch.arange(9) % 3
    assert graph_difference(z, y, 3) == graph_difference(z.detach().numpy(), y.numpy(), 3)


def test_rows_that_do_not_match_are_refused():
    with pytest.raises(InputError, match="z has 3, y has 2"):
        graph_difference(np.zeros((3, 1)), np.zeros(2, dtype=int), 1)
