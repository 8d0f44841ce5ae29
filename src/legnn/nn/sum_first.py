"""Attention that sums what nodes read and multiplies the sums: fewer products where few nodes receive."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.nn.layer import targets_of
from legnn.nn.message_passing import SUM_FIRST, LabelAttention, add_label_messages
from legnn.nn.normalization import Normalization
from legnn.nn.products import product
from legnn.ops import AttentionConfig, attend
from legnn.ops.rows import scale_rows, split_scores

WORTH_SUMS = 10**8
"""Multiplications that attention saves by summing first; with fewer, products are not what takes time."""
GATHER = 8
"""Multiplications of a product that take as long as reading a number along an edge."""


def is_worth_summing_first(graph: LabelGraph, x: Tensor, config: AttentionConfig, normalization: Normalization) -> bool:
    """Whether `attend_then_multiply` saves much: on a CPU, for a wide layer with many more senders than targets."""
    sources, columns = x.size(0), x.size(1)
    if sources < SUM_FIRST * graph.num_nodes or x.is_cuda or normalization.kind == "joint":
        return False
    gathered = config.heads * columns * (graph.adjacency.num_edges + sources)
    saved = columns * config.channels * (sources - graph.num_nodes)
    # in bf16 a product takes half of the time, what goes along edges more than that
    saved //= 2 if x.dtype == torch.bfloat16 else 1
    return saved - GATHER * gathered >= WORTH_SUMS


def attend_then_multiply(
    graph: LabelGraph,
    x: Tensor,
    weight: Tensor,
    score_rows: Tensor,
    labels: LabelAttention | None,
    add: Tensor | None,
    normalization: Normalization,
    config: AttentionConfig,
) -> Tensor:
    """`pass_attention_messages` to nodes, within each relation: `Σ_j α_ij W h_j = W Σ_j α_ij h_j`, head by head.

    Shapes: `x` `[N, in]`, `weight` `[out, in]`, `score_rows` `[heads, in]`, or as many again for targets below those
    for sources; `add` `[M, out]` or longer or None; returns `[M, out]`.
    """
    scales, label_scales = normalization.scales(graph, x, enhanced=labels is not None)
    source, target = split_scores(product(x, score_rows), config._replace(channels=0))
    one_head, sums = config._replace(channels=x.size(1), heads=1), []
    for h in range(config.heads):
        scores = [one[:, h : h + 1] for one in (source, target) if one is not None]
        read = torch.cat([x, *scores], 1)
        unlabeled = scales._replace(from_label=None)
        sums.append(attend(graph, read, None, None, None, unlabeled, one_head, update_labels=False).nodes)
    parts = weight.split(config.channels // config.heads)
    nodes = torch.cat([product(one, part) for one, part in zip(sums, parts, strict=True)], 1)
    if labels is not None:
        nodes = add_label_messages(graph, nodes, scale_rows(labels.values, label_scales.to_nodes), scales)
    return nodes if add is None else nodes + targets_of(add, graph)
