"""Splits that are drawn: properties that hold for all labels and seeds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from legnn.data.splits import (
    NO_SPLIT,
    TRAIN,
    VAL,
    from_masks,
    split_number,
    split_words,
    stratified_split,
    to_masks,
)


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=60), st.integers(0, 5))
def test_drawn_split_trains_every_class_and_holds_labeled_nodes_alone(labels, seed):
    y = torch.tensor(labels)
    split = stratified_split(y, seed)
    assert torch.equal(split != NO_SPLIT, y >= 0)
    for c in set(labels) - {-1}:
        size, train = labels.count(c), int((split[y == c] == TRAIN).sum())
        assert train >= 1
        assert size < 2 or int((split[y == c] == VAL).sum()) >= 1
        assert abs(train - 0.6 * size) <= 1


def test_drawn_split_depends_on_the_seed_alone():
    y = torch.from_numpy(np.arange(100) % 3)
    assert torch.equal(stratified_split(y, 1), stratified_split(y, 1))
    assert not torch.equal(stratified_split(y, 1), stratified_split(y, 2))


def test_setting_without_a_number_is_the_default_split():
    assert [split_number(split) for split in (None, "default", 0, 3)] == [None, None, 0, 3]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_masks_and_vector_say_the_same(values):
    split = torch.tensor(values, dtype=torch.int8)
    assert torch.equal(from_masks(to_masks(split)), split)
    assert split_words(split).tolist() == [("", "train", "val", "test")[value] for value in values]


def test_mask_of_one_column_is_of_every_split():
    train = torch.tensor([[1, 0], [0, 1], [0, 0]]).bool()
    masks = {"train_mask": train, "val_mask": ~train & torch.tensor([[1], [1], [0]]).bool()}
    split = from_masks({**masks, "test_mask": torch.tensor([0, 0, 1]).bool()})
    assert split.tolist() == [[1, 2], [2, 1], [3, 3]]


def test_node_in_two_masks_is_refused():
    mask = torch.tensor([False, True])
    with pytest.raises(ValueError, match=r"1, \[1, 3\]"):
        from_masks({"train_mask": mask, "val_mask": ~mask, "test_mask": mask})
