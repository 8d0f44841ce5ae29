"""The accuracy of pseudo labels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legnn.analysis.pseudo_labels import (
    BANDS,
    accuracy_by_band,
    first_epoch_with_pseudo_labels,
    pseudo_label_course,
)
from legnn.errors import InputError


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans())), st.sets(st.floats(0, 1), min_size=2, max_size=6))
def test_a_band_is_open_below_and_closed_above(nodes, edges):
    edges = sorted(edges)
    found = accuracy_by_band([p for p, _ in nodes], [right for _, right in nodes], edges)
    assert found["low"].tolist() == edges[:-1]
    assert found["high"].tolist() == edges[1:]
    for row in found.itertuples():
        own = [right for p, right in nodes if row.low < p <= row.high]
        assert row.nodes == len(own)
        assert math.isnan(row.accuracy) if not own else row.accuracy == pytest.approx(sum(own) / len(own))


def test_the_papers_bands_are_the_default():
    assert BANDS == (0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0)
    found = accuracy_by_band(np.float64([0.9, 0.91, 0.995, 1.0, 0.5]), [True, True, False, True, True])
    assert found["nodes"].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert found["accuracy"].iloc[-1] == 0.5


@pytest.mark.parametrize("edges", [[0.5], [0.5, 0.5], [0.9, 0.8], [[0.1, 0.2]]])
def test_edges_that_do_not_ascend_are_refused(edges):
    with pytest.raises(InputError, match="must be two or more ascending numbers"):
        accuracy_by_band([0.9], [True], edges)


def log(epoch, number, accuracy):
    return {"epoch": epoch, "training_confidence": 0.5, "pseudo_labels": number, "pseudo_label_accuracy": accuracy}


def test_the_course_has_the_epochs_with_as_train():
    course = pseudo_label_course([log(1, 0, None), log(2, 7, 0.5), log(3, 9, 0.75)])
    assert course["pseudo_labels"].tolist() == [0, 7, 9]
    assert math.isnan(course["pseudo_label_accuracy"][0])
    assert first_epoch_with_pseudo_labels(course) == 2


@pytest.mark.parametrize("logs", [[], [log(1, None, None)], [log(1, 0, None)]])
def test_without_pseudo_labels_there_is_no_first_epoch(logs):
    assert first_epoch_with_pseudo_labels(pseudo_label_course(logs)) is None
