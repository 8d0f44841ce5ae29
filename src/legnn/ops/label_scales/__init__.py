"""Factors of the messages along label edges, a number for each node."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

if TYPE_CHECKING:
    from legnn.ops.csr.label_edges import LabelEdges


EXPONENTS = frozenset((-1.0, -0.5, 0.0, 0.5))
"""Of counts, that the kernel has."""


class LabelFactors(NamedTuple):
    """Factors by node, `[n]` each; those of nodes that show no label are not read."""

    chosen: tuple[Tensor, Tensor]
    """Of two pairs of numbers, those for the nodes that show a label, and for those that do not."""
    from_label: Tensor
    """The first of `chosen` times `count^source`, of the class that a node shows."""
    to_label: Tensor
    """`count^target`."""


def label_factors(
    edges: LabelEdges,
    hidden: tuple[Tensor, Tensor],
    shown: tuple[Tensor, Tensor],
    source: float,
    target: float,
) -> LabelFactors:
    """Returns the factors of `edges` on a GPU, `count` being how many nodes show a class.

    Args:
        edges: the label edges of a whole graph.
        hidden: two numbers for each node, `[n]` each, of those that show no label.
        shown: of those that show one.
        source: one of `EXPONENTS`.
        target: another.
    """
    # Triton takes a moment to import
    from legnn.ops.label_scales.triton_kernels import launch

    found = launch(edges.label_of, edges.count_minus_one, *hidden, *shown, source, target)
    return LabelFactors(found[:2], *found[2:])
