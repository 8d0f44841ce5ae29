"""The kernels of a device: what the numba and the Triton modules of each operation provide.

Nothing here is differentiable. Sums are taken in single precision or better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import Tensor, nn

from legnn.ops.types import AttentionGradient, AttentionInputs, NormInputs, RealRows, RowTerms, Softmax

if TYPE_CHECKING:
    from legnn.ops.csr.adjacency import Adjacency
    from legnn.ops.gather import HotRows


class PropagateKernels(Protocol):
    """Sums over the edges of each row."""

    def sum_rows(self, adjacency: Adjacency, x: Tensor, terms: RowTerms = RowTerms()) -> Tensor:
        """Returns `A x` `[rows, D]` for `x` `[cols, D]`, scaled and added to as `terms` say."""

    def add_label_rows(self, x: Tensor, shown: Tensor, y: Tensor, rows: Tensor) -> None:
        """Adds row `y[s]` of `rows` `[C, D]` to row `shown[s]` of `x` `[M, D]`, in place."""


class AttentionKernels(Protocol):
    """Softmax over the edges of each row, its weighted sum, and the gradient of both."""

    READS_SHARE: bool
    """Whether the gradient reads `α_ij`, or computes it again."""

    def softmax(
        self, adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float, target_scale: Tensor | None
    ) -> Softmax:
        """Returns the softmax over the edges of each row, whose sum is multiplied by `target_scale` `[rows]`."""

    def attention_sum(self, adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
        """Returns `Σ_j α_ij values_j` `[rows, padded_width(channels)]`, scaled and added to as `terms` say."""

    def attention_gradient(
        self, nodes: AttentionGradient, labels: AttentionGradient | None, into: Tensor, score_scale: Tensor | None
    ) -> Tensor | None:
        """Writes the gradient of `values_and_scores`, of both relations, into `into`, padding columns included.

        The gradient that the source scores have from the nodes alone is multiplied by `score_scale` `[cols]`. Returns
        the gradient of the target scores of the labels `[C, heads]`, None where there is none.
        """


class NormActDropoutKernels(Protocol):
    """Batch norm, activation and dropout of the rows of a matrix.

    `x` may have more columns than the statistics: they are zero, and stay zero.
    """

    READS_OUTPUT: bool
    """Whether the gradient of a batch norm reads the output, or computes from `x` what of it is positive."""

    def batch_norm_statistics(self, x: Tensor, norm: nn.BatchNorm1d, rows: RealRows | None) -> NormInputs:
        """Returns the statistics of the columns, of the given rows alone, if any are given.

        Updates the running statistics in place.
        """

    def scale_act_dropout(
        self, x: Tensor, scale: Tensor | None, shift: Tensor | None, dropout: float, seed: Tensor | None, *, relu: bool
    ) -> Tensor:
        """Returns `dropout(relu(scale ∘ x + shift))`, without dropout if `seed` is None."""

    def act_dropout_gradient(self, gradient: Tensor, out: Tensor, factor: float) -> Tensor:
        """Returns `factor · gradient` where `out` is positive, otherwise 0."""

    def norm_act_dropout_gradient(
        self, gradient: Tensor, out: Tensor | None, x: Tensor, norm: NormInputs, dropout: float, seed: Tensor | None,
        rows: RealRows | None,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """Returns the gradients of `x`, of the weight and of the bias of the batch norm.

        Other rows than the given have the gradient zero.
        """


class GatherKernels(Protocol):
    """Rows in the host's memory, read by a GPU."""

    def gather_from_host(self, values: Tensor, rows: Tensor, hot: HotRows | None) -> Tensor:
        """Returns the rows `[n, …]` of `values` `[M, …]`, contiguous and pinned, on the device of `rows` `[n]`.

        Rows that are `hot` are read from the memory of that device.
        """
