"""The operations with their gradients written out, over the kernels of one device.

Each kernel does in one pass over the rows what plain PyTorch does in many; none keeps a tensor of features per edge. A
gradient travels along the transpose, and since that of a label graph is a label graph, the same kernels carry it.
`ops.kernels` says what a device must offer; `cpu` and `gpu` offer it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from legnn.ops.kernels import Kernels
from legnn.ops.reference import Norm, normed, scores
from legnn.ops.types import Attended, Attention, AttentionConfig, LabelMessage, Scales

if TYPE_CHECKING:
    from legnn.graph import Adjacency, LabelEdges, LabelGraph


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        labels: Tensor | None,
        add: Tensor | None,
        graph: LabelGraph,
        scales: Scales,
        classes: bool,
        kernels: Kernels,
    ) -> tuple[Tensor, Tensor | None]:
        ctx.rest = graph, scales, classes, kernels
        ctx.labels = None if labels is None else labels.shape
        label = _label_message(graph, labels, scales)
        nodes = kernels.sum_rows(graph.adjacency, x, scales.source, scales.target, label, add)
        if not classes:
            return nodes, None
        if graph.to_labels.is_empty:
            return nodes, x.new_zeros(graph.num_classes, x.size(1))
        return nodes, kernels.sum_rows(graph.to_labels.classes, x, scales.classes)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        graph, scales, classes, kernels = ctx.rest
        _, labels, add = ctx.needs_input_grad[:3]
        nodes = gradients[0].contiguous()
        label = None
        if classes and not graph.to_labels.is_empty:
            label = LabelMessage(graph.to_labels.label_of, gradients[1].contiguous(), scales.classes)
        d_x = kernels.sum_rows(graph.adjacency.transpose, nodes, scales.target, scales.source, label)
        d_labels = _label_gradient(kernels, graph, nodes, scales, ctx.labels) if labels else None
        return d_x, d_labels, nodes if add else None, None, None, None, None


def propagate(
    kernels: Kernels,
    graph: LabelGraph,
    x: Tensor,
    labels: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    *,
    classes: bool,
) -> tuple[Tensor, Tensor | None]:
    """Equal to `reference.propagate`."""
    nodes, sums = _Propagate.apply(
        x.contiguous(), _contiguous(labels), _contiguous(add), graph, scales, classes, kernels
    )
    return nodes, sums


def _label_message(graph: LabelGraph, labels: Tensor | None, scales: Scales) -> LabelMessage | None:
    """What labels add to nodes; None where none of them shows one."""
    if labels is None or graph.to_nodes.is_empty:
        return None
    return LabelMessage(graph.to_nodes.label_of, labels, scales.label)


def _label_gradient(
    kernels: Kernels, graph: LabelGraph, gradient: Tensor, scales: Scales, shape: tuple[int, ...]
) -> Tensor:
    """What comes back to the labels from the nodes that show them; `gradient` is `[M, D]`."""
    if graph.to_nodes.is_empty:
        return gradient.new_zeros(shape)
    return kernels.sum_rows(graph.to_nodes.classes, gradient, scales.label)[:, : shape[1]]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        sent: Tensor,
        labels: Tensor | None,
        label_target: Tensor | None,
        add: Tensor | None,
        graph: LabelGraph,
        scales: Scales,
        kind: AttentionConfig,
        classes: bool,
        kernels: Kernels,
    ) -> tuple[Tensor | None, ...]:
        # scores are read once for every edge: by themselves they are few enough to stay in the cache
        source, target = (_single(score) for score in scores(sent, kind))
        assert source is not None
        label = _label_message(graph, labels, scales)
        slope = kind.negative_slope
        log = kernels.log_denominator(graph.adjacency, source, target, slope)
        attention = Attention(sent, kind.channels, source, target, log, slope)
        nodes = kernels.attention_sum(graph.adjacency, attention, scales.source, scales.target, label, add)
        new_labels = label_log = None
        ctx.hears = classes and not graph.to_labels.is_empty
        if classes and not ctx.hears:
            new_labels = nodes.new_zeros(graph.num_classes, nodes.size(1))
            label_log = log.new_full((graph.num_classes, kind.heads), -torch.inf)
        elif classes:
            label_target = _single(label_target)
            label_log = kernels.log_denominator(graph.to_labels.classes, source, label_target, slope)
            attention = attention._replace(target=label_target, log_denominator=label_log)
            new_labels = kernels.attention_sum(graph.to_labels.classes, attention, scales.classes)
        ctx.save_for_backward(sent, source, target, labels, label_target, add, nodes, log, new_labels, label_log)
        ctx.rest = graph, scales, kind, kernels
        return nodes, log, new_labels, label_log

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        sent, source, target, labels, label_target, add, nodes, log, new_labels, label_log = ctx.saved_tensors
        graph, scales, kind, kernels = ctx.rest
        channels, heads = kind.channels, kind.heads
        gradient = gradients[0].contiguous()
        label = _label_message(graph, labels, scales)
        d_sent = torch.empty_like(sent)
        d_sent[:, channels + heads :] = 0
        # Σ_k α_ik (t_i s_k gradient_i · values_k), which softmax takes off every score's gradient
        dot = kernels.attention_dot(gradient, nodes, channels, heads, label, add) - gradients[1]
        attention = Attention(sent, channels, source, target, log, kind.negative_slope)
        turn = graph.adjacency.transposition
        edges = kernels.attention_gradient(
            turn.adjacency, attention, gradient, dot, scales.source, scales.target, d_sent, add=False
        )
        if edges is not None:
            targets = kernels.sum_edges(graph.adjacency, edges, turn.place)
            # in a part of a graph those that receive are the first of those that send
            d_sent[: targets.size(0), channels + heads : channels + 2 * heads] = targets
        d_label_target = None
        if new_labels is not None and not ctx.hears:
            # zeros, not nothing: processes that train together wait for a gradient of every parameter
            d_label_target = None if label_target is None else torch.zeros_like(label_target)
        elif new_labels is not None:
            gradient_of_labels = gradients[2].contiguous()
            dot = kernels.attention_dot(gradient_of_labels, new_labels, channels, heads) - gradients[3]
            attention = attention._replace(target=label_target, log_denominator=label_log)
            turn = graph.to_labels.classes.transposition
            edges = kernels.attention_gradient(
                turn.adjacency, attention, gradient_of_labels, dot, scales.classes, None, d_sent, add=True
            )
            if edges is not None:
                d_label_target = kernels.sum_edges(graph.to_labels.classes, edges, turn.place).to(sent.dtype)
        d_labels = None
        if labels is not None:
            d_labels = _label_gradient(kernels, graph, gradient, scales, labels.shape)
        return d_sent, d_labels, d_label_target, None if add is None else gradient, *[None] * 5


def attend(
    kernels: Kernels,
    graph: LabelGraph,
    sent: Tensor,
    labels: Tensor | None,
    label_target: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    kind: AttentionConfig,
    *,
    classes: bool,
) -> Attended:
    """Equal to `reference.attend`."""
    nodes, log_denominator, new_labels, label_log_denominator = _Attend.apply(
        sent.contiguous(), _contiguous(labels), label_target, _contiguous(add), graph, scales, kind, classes, kernels
    )
    if new_labels is not None:
        new_labels = new_labels[:, : kind.channels]
    return Attended(nodes, log_denominator, new_labels, label_log_denominator)


class _LabelGather(torch.autograd.Function):
    # PyTorch would add up the rows of a class in whatever order its threads come
    @staticmethod
    def forward(ctx: Any, labels: Tensor, graph: LabelGraph, kernels: Kernels) -> Tensor:
        ctx.rest = graph, kernels
        return labels.index_select(0, graph.y)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        graph, kernels = ctx.rest
        if graph.to_nodes.is_empty:
            return gradients[0].new_zeros(graph.num_classes, gradients[0].size(1)), None, None
        nodes = gradients[0].new_zeros(graph.num_nodes, gradients[0].size(1))
        return kernels.sum_rows(graph.to_nodes.classes, nodes.index_copy_(0, graph.shown, gradients[0])), None, None


def label_gather(kernels: Kernels, graph: LabelGraph, labels: Tensor) -> Tensor:
    """Equal to `reference.label_gather`."""
    out: Tensor = _LabelGather.apply(labels, graph, kernels)
    return out


class _AddLabels(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, labels: Tensor, edges: LabelEdges, kernels: Kernels) -> Tensor:
        ctx.rest = edges, kernels
        ctx.mark_dirty(x)
        kernels.add_label_rows(x, edges.shown, edges.y, labels)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        edges, kernels = ctx.rest
        return gradients[0], kernels.sum_rows(edges.classes, gradients[0].contiguous()), None, None


def add_labels_(kernels: Kernels, edges: LabelEdges, x: Tensor, labels: Tensor) -> Tensor:
    """Equal to `reference.add_labels_`."""
    out: Tensor = _AddLabels.apply(x, labels.contiguous(), edges, kernels)
    return out


class _ProjectEntries(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Adjacency, values: Tensor, kernels: Kernels) -> Tensor:
        ctx.rest = rows, values, kernels
        return kernels.sum_rows(rows.with_weight(values), weight.T.contiguous())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        rows, values, kernels = ctx.rest
        turn = rows.transposition
        turned = turn.adjacency.with_weight(values.index_select(0, turn.origin))
        return kernels.sum_rows(turned, gradients[0].contiguous()).T, None, None, None


def project_entries(kernels: Kernels, rows: Adjacency, values: Tensor, weight: Tensor) -> Tensor:
    """Equal to `reference.project_entries`."""
    out: Tensor = _ProjectEntries.apply(weight, rows, values, kernels)
    return out


class _Finish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropout: float, seed: Tensor | None, kernels: Kernels) -> Tensor:
        out = kernels.activate(x, None, None, dropout, seed)
        # what was dropped or negative is zero: the output itself says where the gradient passes
        ctx.save_for_backward(out)
        ctx.rest = _kept_factor(dropout, seed), kernels
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        factor, kernels = ctx.rest
        gradient = kernels.activate_gradient(gradients[0].contiguous(), ctx.saved_tensors[0], factor)
        return gradient, None, None, None


class _FinishBatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        norm: torch.nn.BatchNorm1d,
        dropout: float,
        seed: Tensor | None,
        kernels: Kernels,
    ) -> Tensor:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.momentum is not None
        mean, inverse, scale, shift = kernels.batch_norm(
            x, weight, bias, norm.running_mean, norm.running_var, norm.momentum, norm.eps
        )
        out = kernels.activate(x, scale, shift, dropout, seed)
        ctx.save_for_backward(out, x, mean, inverse, weight)
        ctx.rest = _kept_factor(dropout, seed), kernels
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factor, kernels = ctx.rest
        gradient = gradients[0].contiguous()
        return *kernels.batch_norm_gradient(gradient, *ctx.saved_tensors, factor), None, None, None, None


def finish(kernels: Kernels, x: Tensor, norm: Norm | None, dropout: float, seed: Tensor | None) -> Tensor:
    """Equal to `reference.finish`."""
    x = x.contiguous()
    out: Tensor
    if isinstance(norm, torch.nn.BatchNorm1d):
        if norm.training:
            out = _FinishBatchNorm.apply(x, norm.weight, norm.bias, norm, dropout, seed, kernels)
            return out
        if not torch.is_grad_enabled():
            assert norm.running_mean is not None
            assert norm.running_var is not None
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            return kernels.activate(x, scale, norm.bias - norm.running_mean * scale, dropout, seed)
    if norm is not None:
        # PyTorch's layer norm is one good kernel already
        x = normed(norm, x)
    out = _Finish.apply(x, dropout, seed, kernels)
    return out


def _kept_factor(dropout: float, seed: Tensor | None) -> float:
    """What entries that are not dropped are multiplied by."""
    return 1.0 if seed is None else 1 / (1 - dropout)


def _single(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.float().contiguous()


def _contiguous(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.contiguous()
