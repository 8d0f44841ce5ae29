"""Splits that are drawn: properties that hold for all labels and seeds."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from legnn.data.splits import split_number, stratified_split


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=60), st.integers(0, 5))
def test_a_drawn_split_trains_every_class_and_never_overlaps(labels, seed):
    y = torch.tensor(labels)
    split = stratified_split(y, seed)
    assert torch.equal(sum(mask.int() for mask in split), (y >= 0).int())
    for c in set(labels) - {-1}:
        size = labels.count(c)
        assert int(split.train[y == c].sum()) >= 1
        assert size < 2 or int(split.val[y == c].sum()) >= 1
        assert abs(int(split.train[y == c].sum()) - 0.6 * size) <= 1


def test_a_drawn_split_depends_on_the_seed_alone():
    y = torch.from_numpy(np.arange(100) % 3)
    assert torch.equal(stratified_split(y, 1).train, stratified_split(y, 1).train)
    assert not torch.equal(stratified_split(y, 1).train, stratified_split(y, 2).train)


def test_a_setting_without_a_number_is_the_default_split():
    assert [split_number(split) for split in (None, "default", 0, 3)] == [None, None, 0, 3]
