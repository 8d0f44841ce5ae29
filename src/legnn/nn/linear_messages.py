"""The linear part of a layer, its matrix taken where there are fewer rows."""

from __future__ import annotations

from torch import Tensor

from legnn.graph import LabelGraph
from legnn.nn.layer import column
from legnn.nn.product import product
from legnn.ops import Scales, label_gather, propagate
from legnn.ops.runtime.padding import pad_columns

FEWER = 2
"""How many times as many nodes must send as receive before summing first pays for the passes it adds."""


def propagate_product(
    graph: LabelGraph,
    x: Tensor,
    weight: Tensor,
    labels: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    *,
    classes: bool,
) -> tuple[Tensor, Tensor | None]:
    """`ops.propagate` of `x Wᵀ`: shapes `x` `[N, in]`, `weight` `[out, in]`, the rest as there.

    `A (x Wᵀ) = (A x) Wᵀ`. In a whole graph the product comes first, and everything else is one pass. In a sample many
    more nodes send than receive: there the sums are taken first, and the product has a row for each that receives.
    """
    if x.size(0) < FEWER * graph.num_nodes:
        return propagate(graph, product(x, weight), labels, add, scales, classes=classes)
    nodes, sums = propagate(graph, x, None, None, scales, classes=classes)
    nodes = product(nodes, weight, add)
    if labels is not None:
        message = label_gather(graph, labels)
        if scales.label is not None:
            message = message * column(scales.label.index_select(0, graph.shown), message)
        nodes = nodes.index_add(0, graph.shown, pad_columns(message, nodes.size(1)))
    return nodes, None if sums is None else product(sums, weight)
