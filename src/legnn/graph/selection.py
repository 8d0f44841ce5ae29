"""Training node selection: which training nodes are predicted this epoch, and which show their labels."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from legnn.errors import InputError
from legnn.ops.checks import check_tensor


class TrainingNodeSelection(NamedTuple):
    """The two parts of the training nodes in one epoch; with selection on, they have no node in common."""

    predicted: Tensor
    """`[P]` nodes that supply the loss."""
    shown: Tensor
    """`[S]` nodes that supply label edges."""


def predicted_count(num_train: int, rate: float) -> int:
    """Returns `⌊α|L|⌋` with `α` as written: 0.29 of 100 is 29 and a third of 3 is 1, which floating point misses."""
    return math.floor(Fraction(rate).limit_denominator(1_000_000) * num_train)


def check_selection(num_train: int, rate: float) -> None:
    """Raises `InputError` if `rate` leaves no training node to predict."""
    if predicted_count(num_train, rate) == 0:
        raise InputError(
            f"alpha = {rate} of {num_train} training nodes leaves none to predict; "
            f"give alpha of at least {1 / num_train:.3g}, or more training labels"
        )


def select_training_nodes(train_index: Tensor, rate: float, generator: Generator) -> TrainingNodeSelection:
    """Picks `⌊rate · |L|⌋` of the training nodes, an index or a mask, to predict; the others show their labels.

    Their order is drawn on the generator's device; if that is also the device of the nodes, nothing synchronizes.
    """
    if not 0 < rate <= 1:
        raise InputError(f"`rate` must be above 0 and at most 1, not {rate}")
    if check_tensor("train_index", train_index).dtype == torch.bool and train_index.dim() == 1:
        train_index = train_index.nonzero().flatten()
    if train_index.is_floating_point() or train_index.dim() != 1:
        raise InputError("`train_index` must be a vector of nodes or a boolean mask")
    order = torch.randperm(train_index.numel(), generator=generator, device=generator.device)
    shuffled = train_index.index_select(0, order.to(train_index.device))
    count = predicted_count(train_index.numel(), rate)
    # a predicted node shows no label, or the model could copy the answer
    return TrainingNodeSelection(predicted=shuffled[:count], shown=shuffled[count:])
