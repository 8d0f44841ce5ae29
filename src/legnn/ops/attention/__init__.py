"""Attention over the neighbors of each node, and over the nodes that show each label."""

from __future__ import annotations

from torch import Tensor

from legnn.ops.attention.autograd import Attend
from legnn.ops.autograd import run
from legnn.ops.types import AttentionConfig, AttentionOutput, LabelGraphLike, Scales


def attend(
    graph: LabelGraphLike,
    values_and_scores: Tensor,
    labels: Tensor | None,
    label_target: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    config: AttentionConfig,
    *,
    update_labels: bool,
) -> AttentionOutput:
    """Attention over a label graph, one softmax within each relation.

    `β_ij = LeakyReLU(source_j + target_i)`, `α_ij = A_ij exp β_ij / Σ_k A_ik exp β_ik`,
    `nodes_i = t_i Σ_j α_ij s_j values_j + l_i labels_{y_i} + add_i`. With `update_labels`, each label attends over the
    nodes that show it in the same way, with target scores `label_target` and `scales.to_label` in place of `s`. The
    scores of sources are multiplied by `scales.score`, for labels only with `scales.scales_label_scores`.

    Args:
        values_and_scores: `[N, W]`, the result of one product. Its columns are the values of all heads
            (`config.channels`), the scores of the nodes as sources (`config.heads`), their scores as targets (as many,
            with `config.use_target_score`), and padding.
        labels: `[C, D]` the messages of the labels, or None.
        label_target: `[C, heads]` the scores of the labels as targets, or None.
        add: `[M, D]`, or None.
    """
    operation = Attend(graph, scales, config, update_labels)
    return AttentionOutput(*run(operation, values_and_scores, labels, label_target, add))
