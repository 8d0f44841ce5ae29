"""What a device must offer for the fused form of the operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from legnn.ops.types import Attention, LabelMessage

if TYPE_CHECKING:
    from legnn.graph import Adjacency


class Kernels(Protocol):
    """What a device offers. Nothing here is differentiable; sums are taken in single precision or better."""

    def sum_rows(
        self,
        adjacency: Adjacency,
        x: Tensor,
        source_scale: Tensor | None = None,
        target_scale: Tensor | None = None,
        label: LabelMessage | None = None,
        add: Tensor | None = None,
    ) -> Tensor:
        """`t_i Σ_j A_ij s_j x_j + label + add`: `x` `[cols, D]` to `[rows, D]`."""
        ...

    def sum_edges(self, adjacency: Adjacency, x: Tensor, place: Tensor) -> Tensor:
        """The sum of `x` `[edges, heads]` over the edges of each row, edge `e` being at `place` `e` of `x`."""
        ...

    def log_denominator(self, adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float) -> Tensor:
        """`log Σ_j A_ij exp LeakyReLU(source_j + target_i)` `[rows, heads]`."""
        ...

    def attention_sum(
        self,
        adjacency: Adjacency,
        attention: Attention,
        source_scale: Tensor | None = None,
        target_scale: Tensor | None = None,
        label: LabelMessage | None = None,
        add: Tensor | None = None,
    ) -> Tensor:
        """`t_i Σ_j α_ij s_j values_j + label + add` `[rows, channels]`, as wide as `padded_width` says."""
        ...

    def attention_dot(
        self,
        gradient: Tensor,
        nodes: Tensor,
        channels: int,
        heads: int,
        label: LabelMessage | None = None,
        add: Tensor | None = None,
    ) -> Tensor:
        """`gradient · (nodes - label - add)` within each head, `[rows, heads]`."""
        ...

    def attention_gradient(
        self,
        turned: Adjacency,
        attention: Attention,
        gradient: Tensor,
        dot: Tensor,
        source_scale: Tensor | None,
        target_scale: Tensor | None,
        into: Tensor,
        *,
        add: bool,
    ) -> Tensor | None:
        """The gradient of the values and source scores, written into the rows of `into`, or added to them.

        `turned` has the sources as rows. Gives, if attention looks at the target, the gradient of each edge's score
        `[edges, heads]`, in the order of `turned`.
        """
        ...

    def add_label_rows(self, x: Tensor, shown: Tensor, y: Tensor, rows: Tensor) -> None:
        """Add to the row `shown_s` of `x` `[M, D]` the row `y_s` of `rows` `[C, D]`."""
        ...

    def batch_norm(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        momentum: float,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of the columns of `x` the mean and the inverse deviation, and the scale and the shift that norm them.

        The running statistics are moved on.

        Here and below `x` may be wider than the statistics: it is zero there, and so is what is made of it.
        """
        ...

    def activate(
        self,
        x: Tensor,
        scale: Tensor | None,
        shift: Tensor | None,
        dropout: float,
        seed: Tensor | None,
    ) -> Tensor:
        """`dropout(relu(scale ∘ x + shift))`."""
        ...

    def activate_gradient(self, gradient: Tensor, out: Tensor, factor: float) -> Tensor:
        """`factor · gradient` where `out` is positive, else 0."""
        ...

    def batch_norm_gradient(
        self, gradient: Tensor, out: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor, factor: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of `x`, of the norm's weight and of its bias."""
        ...

    def drop(self, x: Tensor, dropout: float, seed: Tensor) -> Tensor:
        """`x` `[n, D]` with entries dropped."""
        ...
