"""Inputs and outputs of the operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from legnn.ops.csr.adjacency import Adjacency
    from legnn.ops.csr.label_edges import LabelEdges


class LabelGraphLike(Protocol):
    """The part of a label graph that the operations read.

    A whole graph has `N = M` nodes. In a sampled block, the `M` target nodes are the first of the `N` source nodes.
    """

    @property
    def adjacency(self) -> Adjacency:
        """`A` `[M, N]`."""

    @property
    def to_nodes(self) -> LabelEdges:
        """`Y` `[M, C]`, along which labels send to nodes."""

    @property
    def to_labels(self) -> LabelEdges:
        """`Y` `[N, C]`, along whose transpose nodes send to labels."""


class Scales(NamedTuple):
    """Factors of the messages of nodes, a number for each node; None for 1. Constants to the gradient."""

    source: Tensor | None = None
    """`[N]` of what a node sends to its neighbors."""
    target: Tensor | None = None
    """`[M]` of what a node receives from its neighbors."""
    from_label: Tensor | None = None
    """`[M]` of what a node receives from its label."""
    to_label: Tensor | None = None
    """`[N]` of what a node sends to its label."""
    score: Tensor | None = None
    """`[N]` attention: of a node's score as a source for its neighbors."""
    scales_label_scores: bool = False
    """Whether `score` is a factor of a node's score as a source for its label, too."""


class NormInputs(NamedTuple):
    """A batch norm `norm(x) = scale ∘ x + shift`, `[D]` each."""

    mean: Tensor
    inverse: Tensor
    """The inverse of the standard deviation."""
    scale: Tensor
    """The weight times `inverse`."""
    shift: Tensor


class RowTerms(NamedTuple):
    """The terms of `out_i = t_i Σ_j … s_j x_j + l_i label_rows_{y_i} + add_i` besides the edges and `x`.

    `s`, `t` and `l` are the scales, 1 where they are None. Without `label_of` or `add`, that term is left out.
    """

    source_scale: Tensor | None = None
    """`[cols]`."""
    target_scale: Tensor | None = None
    """`[rows]`."""
    label_of: Tensor | None = None
    """`[rows]` the class `y_i` that a row shows, -1 for none."""
    label_rows: Tensor | None = None
    """`[C, D]` the message of each label."""
    label_scale: Tensor | None = None
    """`[rows]`."""
    add: Tensor | None = None
    """`[rows, D]` or narrower; rows may lie in the same memory."""


class AttentionConfig(NamedTuple):
    """The form of attention, and where values and scores are in the columns of `values_and_scores`."""

    channels: int
    """Channels of the values, all heads together."""
    heads: int
    use_target_score: bool
    """Whether the score of an edge depends on its target."""
    negative_slope: float
    """Slope of the LeakyReLU below zero."""


class Softmax(NamedTuple):
    """A softmax over the edges of each row."""

    log_denominator: Tensor
    """`[rows, heads]` `log Σ_j A_ij exp LeakyReLU(source_j + target_i)`."""
    share: Tensor
    """`[edges, heads]` `α_ij`."""
    scaled_log: Tensor | None
    """`[rows, heads]` `log_denominator - log t_i`, with which `t_i α_ij` is one exponential, if the kernels read it."""


class AttentionInputs(NamedTuple):
    """All that determines `α_ij = A_ij exp(LeakyReLU(source_j + target_i) - log_denominator_i)` and the values."""

    values_and_scores: Tensor
    """`[cols, W]`, see `AttentionConfig`."""
    config: AttentionConfig
    source: Tensor
    """`[cols, heads]` float32, as are `target` and `log_denominator`."""
    target: Tensor | None
    """`[rows, heads]`, or None for scores that do not depend on the target."""
    log_denominator: Tensor
    """`[rows, heads]`."""
    share: Tensor | None
    """`[edges, heads]` `α_ij`, if the kernels keep it."""
    scaled_log: Tensor | None
    """See `Softmax`."""


class AttentionGradient(NamedTuple):
    """Attention along the edges of one relation, and the gradient that arrives at it."""

    adjacency: Adjacency
    inputs: AttentionInputs
    terms: RowTerms
    """Terms of the sum."""
    d_output: Tensor
    """`[rows, D]`, the gradient of the sum."""
    d_log: Tensor | None
    """`[rows, heads]`, that of the log-denominator; None where nothing reads it."""
    label_of: Tensor | None = None
    """`[cols]` where every column has one edge at most: its row, -1 for none."""


class AttentionOutput(NamedTuple):
    """Result of attention over a label graph."""

    nodes: Tensor
    """`[M, D]`."""
    log_denominator: Tensor
    """`[M, heads]` of each node's softmax over its neighbors, by which one more edge can join it; `-inf` for a node
    without neighbors."""
    labels: Tensor | None
    """`[C, D]`, if labels are updated."""
    label_log_denominator: Tensor | None
    """`[C, heads]` of each label's softmax over the nodes that show it."""
