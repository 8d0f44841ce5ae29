"""Inference layer by layer, over all neighbors, for a graph that does not fit on the device at once.

Every layer is computed for all nodes that a later one needs, part by part, before the next begins: each node once a
layer, where predicting batch by batch would compute the same neighbors over and over. Equal to the full batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph import LabelBlock, LabelEdges, LabelGraph, SampledLabelGraph
from legnn.graph.sampling import all_neighbors, all_senders, neighbors_of
from legnn.nn import LEGNN
from legnn.nn.block import Block
from legnn.nn.features import Features
from legnn.ops import class_sum
from legnn.training.batching import class_and_confidence
from legnn.training.memory import SINGLE, Size, total_bytes
from legnn.training.ranks import ALONE, Ranks
from legnn.training.task import Task

Reduce = Callable[[Tensor], Tensor]
"""From the logits `[n, C]` of some nodes to what is kept of each, `[n, ...]`."""

AT_ONCE = {"cpu": 2**25, "cuda": 2**32}
"""Bytes of one matrix of a part, by device: enough to keep it busy. A part has no more nodes than edges."""


AT_ONCE_SHARE = 0.25
"""A graph whose inference takes no more than this part of the memory is computed at once, which is faster."""


class _Needed(NamedTuple):
    """Which nodes each layer is computed for, as long as the same nodes are asked for."""

    shown: Tensor
    nodes: Tensor
    masks: list[Tensor]
    """`[M]` bool: of the input, and of the output of every layer."""


class LayerWise:
    """Computes a model for any nodes of a graph in bounded memory of the device.

    The outcome of a layer, `[M, D]`, is kept where the graph lies. With several processes each computes its share of
    the parts.
    """

    def __init__(
        self,
        model: LEGNN,
        task: Task,
        device: torch.device,
        dtype: torch.dtype,
        *,
        at_once: int | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.model, self.task, self.device, self.dtype, self.ranks = model, task, device, dtype, ranks
        width = max(model.encoder.channels, model.encoder.project.in_features)
        self.at_once = at_once or max(AT_ONCE[device.type] // (SINGLE * width), 1)
        self.whole = at_once is None and ranks.size == 1 and self._fits()
        self._kept: list[_Needed] = []

    @torch.no_grad()
    def rows(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """What `reduce` makes of the logits of `nodes` `[n]`, the nodes `shown` showing their labels; `[n, ...]`.

        `shown` and `nodes` are known again by the objects they are, so their contents must not change.
        """
        self.model.eval()
        graph = self.task.show(shown)
        if self.whole:
            return reduce(self.model(self._x, graph).index_select(0, nodes))
        if nodes.numel() == 0:
            return reduce(torch.zeros(0, graph.num_classes, device=nodes.device))
        needed = self._needed(graph, shown, nodes)
        state, labels = self._encode(graph, needed[0])
        for k, layer in enumerate(self.model.layers[:-1]):
            assert isinstance(layer, Block)
            new = torch.zeros_like(state)
            for part in self._parts(graph, needed[k + 1]):
                new[part.nodes[: part.num_nodes]] = self._compute(layer, part, state, labels)[0].to(new.device)
            labels = self._labels(layer, graph, state, labels)
            state = self.ranks.sum_(new)
        last = self.model.layers[-1]
        assert isinstance(last, Block)
        wanted = needed[-1].nonzero().flatten()
        # what `reduce` makes of no logits says what it makes of others; only those asked for have a row
        shape = reduce(torch.zeros(0, graph.num_classes, device=state.device))
        out = shape.new_zeros(wanted.numel(), *shape.shape[1:])
        for part in self._parts(graph, needed[-1]):
            rows = reduce(self.model.classify(self._compute(last, part, state, labels)[0]))
            out[torch.searchsorted(wanted, part.nodes[: part.num_nodes])] = rows.to(out.device)
        return self.ranks.sum_(out)[torch.searchsorted(wanted, nodes)]

    def predict(self, shown: Tensor, nodes: Tensor) -> Tensor:
        """`[n, 2]` class and confidence of `nodes`, the nodes `shown` showing their labels."""
        return self.rows(shown, nodes, class_and_confidence)

    def _fits(self) -> bool:
        """Whether all nodes can be computed at once; by the size of the memory, so that it is always decided alike."""
        task, encoder = self.task, self.model.encoder
        if task.x.device.type != self.device.type:
            return False
        edges, classes = task.graph.adjacency.num_edges, task.graph.num_classes
        size = Size(task.x.size(0), edges, task.x.size(1), classes, encoder.channels, len(self.model.layers))
        return size.inference_bytes <= AT_ONCE_SHARE * total_bytes(self.device)

    @cached_property
    def _x(self) -> Features:
        return self.model.features(self.task.x, self.dtype, self.task.node_type)

    def class_mean(self, graph: LabelGraph) -> Tensor | None:
        """`[C, F]` the mean features of the nodes that show each class, where the model begins with it."""
        embedding = getattr(self.model.encoder, "label_embedding", None)
        if embedding is None or embedding.kind != "class-mean":
            return None
        total = torch.zeros(graph.num_classes, self.model.encoder.project.in_features, device=self.device)
        for own in graph.shown.split(self.at_once):
            edges = LabelEdges.from_label_of(graph.to_nodes.label_of[own], graph.num_classes).to(self.device)
            total += class_sum(edges, self.features(own))[:, : total.size(1)]
        return total / graph.label_count.to(total).clamp(min=1)[:, None]

    def features(self, nodes: Tensor) -> Tensor:
        """The features of `nodes` as the model takes them, on the device."""
        return gather_features(self.model, self.task, nodes, self.device, self.dtype)

    def _encode(self, graph: LabelGraph, needed: Tensor) -> tuple[Tensor, Tensor | None]:
        """`H_N⁰` `[M, D]` where it is needed, kept where the graph lies, and `H_L⁰` `[C, D]`."""
        mean = self.class_mean(graph)
        state: Tensor | None = None
        labels: Tensor | None = None
        for own in needed.nonzero().flatten().split(self.at_once):
            at_input = LabelEdges.from_label_of(graph.to_nodes.label_of[own], graph.num_classes).to(self.device)
            rows, labels = self.model.encoder(self.features(own), SampledLabelGraph([], at_input, mean))
            if state is None:
                state = rows.new_zeros(graph.num_nodes, rows.size(1), device=graph.shown.device)
            state[own] = rows.to(state.device)
        assert state is not None
        return state, labels

    def _labels(self, layer: Block, graph: LabelGraph, state: Tensor, labels: Tensor | None) -> Tensor | None:
        """The labels after `layer`, from all nodes that show them."""
        if labels is None:
            return None
        out = torch.zeros_like(labels)
        for classes in self.ranks.share(_cut(graph.to_labels.count, self.at_once)):
            computed = self._compute(layer, all_senders(graph, classes), state, labels)[1]
            assert computed is not None
            mine = classes.to(out.device)
            out[mine] = computed[mine]
        return self.ranks.sum_(out)

    def _compute(
        self, layer: Block, part: LabelBlock, state: Tensor, labels: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        x = state.index_select(0, part.nodes).to(self.device)
        out: tuple[Tensor, Tensor | None] = layer(x, labels, part.to(self.device))
        return out

    def _parts(self, graph: LabelGraph, needed: Tensor) -> Iterator[LabelBlock]:
        """This process's share of the nodes `needed` `[M]`, with all their edges."""
        nodes = needed.nonzero().flatten()
        for places in self.ranks.share(_cut(_edges(graph, nodes), self.at_once)):
            yield all_neighbors(graph, nodes[places])

    def _needed(self, graph: LabelGraph, shown: Tensor, nodes: Tensor) -> list[Tensor]:
        for kept in self._kept:
            if kept.shown is shown and kept.nodes is nodes:
                return kept.masks
        # the latest of each kind of question: validation asks the same in every epoch, AS-Train another each time
        found = _Needed(shown, nodes, self._masks(graph, nodes))
        self._kept = [*[kept for kept in self._kept if kept.nodes is not nodes][-1:], found]
        return found.masks

    def _masks(self, graph: LabelGraph, nodes: Tensor) -> list[Tensor]:
        """From the nodes asked for back to those whose features they depend on."""
        adjacency = graph.adjacency
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool, device=nodes.device).index_fill(0, nodes, True)
        masks = [mask]
        enhanced = self.model.encoder.labels == "enhanced"
        for k in reversed(range(len(self.model.layers))):
            mask = mask.clone()
            if not bool(mask.all()):
                rows = mask.nonzero().flatten()
                for places in _cut(_edges(graph, rows), self.at_once):
                    mask[neighbors_of(adjacency, rows[places])] = True
            if enhanced and k + 1 < len(self.model.layers):
                # labels are computed in every layer but the last, from all nodes that show them
                mask[graph.shown] = True
            masks.insert(0, mask)
        return masks


def gather_features(model: LEGNN, task: Task, nodes: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The features of `nodes` `[n]` as the model takes them, on `device`."""
    node_type = None if task.node_type is None else _rows(task.node_type, nodes, device)
    return model.dense_features(_rows(task.x, nodes, device), dtype, node_type)


def _rows(values: Tensor, nodes: Tensor, device: torch.device) -> Tensor:
    rows = values.index_select(0, nodes)
    # from pinned memory the copy runs beside what the device is doing
    return rows if rows.device == device else rows.pin_memory().to(device, non_blocking=True)


def _edges(graph: LabelGraph, nodes: Tensor) -> Tensor:
    return graph.adjacency.rowptr[nodes + 1] - graph.adjacency.rowptr[nodes]


def _cut(work: Tensor, at_once: int) -> list[Tensor]:
    """Positions `0 … n - 1` in runs of about `at_once` work each; `work` is `[n]`."""
    if work.numel() == 0:
        return []
    part = (work + 1).long().cumsum(0) // at_once
    sizes = torch.unique_consecutive(part, return_counts=True)[1].tolist()
    return list(torch.arange(work.numel(), device=work.device).split(sizes))
