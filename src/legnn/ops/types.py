"""The shapes that go into and come out of the operations along edges."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Scales(NamedTuple):
    """What messages are multiplied by, `[M]` each; None for 1. Constants to the gradient."""

    source: Tensor | None = None
    """What a node sends to its neighbors."""
    target: Tensor | None = None
    """What arrives at a node from its neighbors."""
    label: Tensor | None = None
    """What arrives at a node from its label."""
    classes: Tensor | None = None
    """What a node sends to its label."""


class LabelMessage(NamedTuple):
    """What labels add to the rows of the nodes that show them."""

    label_of: Tensor
    """`[M]` the class a node shows, -1 for none."""
    rows: Tensor
    """`[C, D]`."""
    scale: Tensor | None
    """`[M]`, or None for 1."""


class AttentionConfig(NamedTuple):
    """What kind of attention it is, and how a node's values and scores lie side by side in one row."""

    channels: int
    """Of the values, over all heads."""
    heads: int
    use_target_score: bool
    """Whether a score depends on the target too."""
    negative_slope: float
    """Of the LeakyReLU."""


class Attention(NamedTuple):
    """All that gives an edge its share `α_ij = A_ij exp(LeakyReLU(source_j + target_i) - log_denominator_i)`."""

    sent: Tensor
    """`[cols, W]`, whose first `channels` are the values."""
    channels: int
    source: Tensor
    """`[cols, heads]`, single precision, as are the next two."""
    target: Tensor | None
    """`[rows, heads]`, None where attention does not look at the target."""
    log_denominator: Tensor
    """`[rows, heads]`."""
    slope: float

    @property
    def heads(self) -> int:
        """How many there are."""
        return self.source.size(1)


class Attended(NamedTuple):
    """What attention over a label graph gives."""

    nodes: Tensor
    """`[M, D]`."""
    log_denominator: Tensor
    """`[M, heads]` of each node's softmax over its neighbors, with which one more edge can be merged into it; `-inf`
    where a node has none."""
    labels: Tensor | None
    """`[C, D]`, if asked for."""
    label_log_denominator: Tensor | None
    """`[C, heads]` of each label's softmax over the nodes that show it."""
