"""A model computed again with something removed: a shown label, an edge, or the features of a node.

For models that are computed stage by stage, only the states that a removal reaches and the prediction needs are
computed again: the others are those of the whole graph. The result is that of the whole graph computed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.graph.blocks import LabelBlock
from legnn.graph.sampling import all_neighbors, all_senders, neighbors_of
from legnn.nn import StagedModel
from legnn.nn.base import Nodes
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.label_edges import LabelEdges
from legnn.training import Inference, LayerWise, Task
from legnn.training.inference import to_probabilities

Kind = Literal["label", "edge", "features"]


class Removal(NamedTuple):
    """What is removed: the label that `node` shows, the edges between it and the predicted node, or its features."""

    kind: Kind
    node: int


class Rerun(Protocol):
    """Predicts a node that shows no label, with something removed."""

    def __call__(self, node: int, removal: Removal | None) -> Tensor:
        """`[C]` the probabilities of `node`."""

    def shown_to(self, node: int) -> Tensor:
        """The nodes that show their labels when `node` is predicted with nothing removed."""


def without_edges(adjacency: Adjacency, first: int, second: int) -> Adjacency:
    """Returns the adjacency without the edges between two nodes, in either direction."""
    keep = torch.ones(adjacency.num_edges, dtype=torch.bool, device=adjacency.col.device)
    fewer = torch.zeros_like(adjacency.rowptr)
    for row, col in {(first, second), (second, first)}:
        begin, end = adjacency.rowptr[row : row + 2].tolist()
        gone = adjacency.col[begin:end] == col
        keep[begin:end] &= ~gone
        fewer[row + 1] += gone.sum().to(fewer.dtype)
    weight = None if adjacency.weight is None else adjacency.weight[keep]
    rowptr = adjacency.rowptr - fewer.cumsum(0, dtype=fewer.dtype)
    return Adjacency(rowptr, adjacency.col[keep], weight, adjacency.num_cols)


class MeanFeatures:
    """`[F]` the mean features of the nodes of a node's type, which take the place of its own: they tell nothing."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._means: dict[int, Tensor] = {}

    def __call__(self, node: int) -> Tensor:
        """Of the type of `node`."""
        types = self.task.node_type
        kind = 0 if types is None else int(types[node])
        if kind not in self._means:
            self._means[kind] = (self.task.x if types is None else self.task.x[types == kind]).mean(0)
        return self._means[kind]


class WholeGraph:
    """Computes the whole graph again; for any model and post-processing.

    Args:
        shown: the nodes that show their labels.
    """

    def __init__(self, layer_wise: LayerWise, inference: Inference, shown: Tensor) -> None:
        self.layer_wise, self.inference, self.shown = layer_wise, inference, shown
        self._mean = MeanFeatures(layer_wise.task)

    def shown_to(self, node: int) -> Tensor:
        """The same nodes for all."""
        return self.shown

    def __call__(self, node: int, removal: Removal | None) -> Tensor:
        """`[C]` the probabilities of `node`."""
        task, shown = self.layer_wise.task, self.shown
        if removal is not None and removal.kind == "label":
            shown = shown[shown != removal.node]
        elif removal is not None and removal.kind == "edge":
            adjacency = without_edges(task.graph.adjacency, node, removal.node)
            task = replace(task, graph=replace(task.graph, adjacency=adjacency))
        elif removal is not None:
            x = task.x.clone()
            x[removal.node] = self._mean(removal.node)
            task = replace(task, x=x)
        before = self.layer_wise
        again = LayerWise(before.model, task, before.device, before.dtype)
        inference = replace(self.inference, predictor=again, task=task)
        return inference.proba_with_shown(shown, torch.tensor([node], device=shown.device))[0].cpu()


@dataclass(eq=False)
class _Needed:
    """What the prediction of one node is computed from."""

    node: int
    masks: list[Tensor]
    """`[M]` bool, of the input and of the output of every stage."""


class ReachedStates:
    """Computes only what a removal reaches, stage by stage.

    States `H^k` of all nodes with nothing removed are kept. A removal reaches the nodes it is about; after each stage
    also those that receive from nodes it has reached, and the labels that such nodes show; through these labels, all
    nodes that show them. Of these, the nodes that the prediction needs are computed again.
    """

    def __init__(self, layer_wise: LayerWise, shown: Tensor) -> None:
        assert isinstance(layer_wise.model, StagedModel)
        self.layer_wise, self.model, self.shown = layer_wise, layer_wise.model.eval(), shown
        self.graph = layer_wise.task.show(shown)
        self._needed: _Needed | None = None
        self._mean = MeanFeatures(layer_wise.task)
        self.states, self.labels = self._all_states()

    def shown_to(self, node: int) -> Tensor:
        """The same nodes for all."""
        return self.shown

    @staticmethod
    def applies_to(layer_wise: LayerWise, inference: Inference) -> bool:
        """Whether the model is computed stage by stage, from nothing but neighbors and labels, and fits the memory."""
        model = layer_wise.model
        is_local = isinstance(model, StagedModel) and not model.uses_class_mean
        return is_local and layer_wise.is_at_once and inference.postprocess is None

    @torch.no_grad()
    def __call__(self, node: int, removal: Removal | None) -> Tensor:
        """`[C]` the probabilities of `node`."""
        if removal is None:
            return self._probabilities(node)
        undo: list[tuple[Tensor, Tensor, Tensor]] = []
        labels = list(self.labels)
        try:
            self._compute(node, removal, undo)
            return self._probabilities(node)
        finally:
            for states, rows, values in reversed(undo):
                states[rows] = values
            self.labels = labels

    def _probabilities(self, node: int) -> Tensor:
        return to_probabilities(self.model.classify(self.states[-1][node : node + 1]))[0].cpu()

    def _all_states(self) -> tuple[list[Tensor], list[Tensor | None]]:
        """`H_N^k` of all nodes and `H_L^k`, from the input to the last stage."""
        with torch.no_grad():
            task, graph = self.layer_wise.task, self.graph
            inputs = self.model.inputs(task.x, self.layer_wise.dtype, task.node_type)
            first = nodes, labels = self.model.encode(inputs, graph)
            states, of_labels = [nodes], [labels]
            for k in range(self.model.num_stages):
                nodes, labels = self.model.stage(k, nodes, labels, graph, first if self.model.reads_first else None)
                states.append(nodes)
                of_labels.append(labels)
        return states, of_labels

    def _compute(self, node: int, removal: Removal, undo: list[tuple[Tensor, Tensor, Tensor]]) -> None:
        graph, device = self.graph, self.shown.device
        reached = torch.zeros(graph.num_nodes, dtype=torch.bool, device=device)
        reached[removal.node] = True
        classes = torch.zeros(graph.num_classes, dtype=torch.bool, device=device)
        shows = self.graph.to_nodes.label_of.long()
        if removal.kind == "edge":
            reached[node] = True
            graph = replace(graph, adjacency=without_edges(graph.adjacency, node, removal.node))
        elif removal.kind == "label":
            graph = self.layer_wise.task.show(self.shown[self.shown != removal.node])
        _mark_classes(classes, shows, reached)
        needed = self._needed_for(node)
        self._encode(graph, removal, (reached & needed[0]).nonzero().flatten(), undo)
        for k in range(self.model.num_stages):
            labels = self._labels_after(k, graph, classes, reached, shows)
            reached = self._reached_after(graph, reached, classes, shows, needed[k + 1])
            rows = reached.nonzero().flatten()
            if rows.numel():
                new = self._stage(k, all_neighbors(graph, rows))[0]
                self._overwrite(self.states[k + 1], rows, new, undo)
            if labels is not None:
                self.labels[k + 1] = labels
                _mark_classes(classes, shows, reached)

    def _reached_after(
        self, graph: LabelGraph, before: Tensor, classes: Tensor, shows: Tensor, needed: Tensor
    ) -> Tensor:
        """`[M]` which of the nodes `needed` receive from those reached `before`, or show one of the `classes`."""
        rows = needed.nonzero().flatten()
        adjacency = graph.adjacency
        count = (adjacency.rowptr[rows + 1] - adjacency.rowptr[rows]).long()
        receives = torch.zeros(rows.numel(), dtype=torch.bool, device=rows.device)
        of_row = torch.repeat_interleave(torch.arange(rows.numel(), device=rows.device), count)
        receives[of_row[before[neighbors_of(adjacency, rows)]]] = True
        label = shows[rows]
        receives |= (label >= 0) & classes[label.clamp(min=0)]
        found = torch.zeros_like(before)
        found[rows] = receives | before[rows]
        return found

    def _labels_after(
        self, k: int, graph: LabelGraph, classes: Tensor, reached: Tensor, shows: Tensor
    ) -> Tensor | None:
        """The labels after stage `k`, where a later stage reads them for this prediction."""
        before = self.labels[k]
        if not self._reads_labels(k + 1) or before is None or self.labels[k + 1] is None:
            return None
        _mark_classes(classes, shows, reached)
        if graph.label_adjacency is not None and bool(classes.any()):
            classes[:] = True
        chosen = classes.nonzero().flatten()
        after = self.labels[k + 1]
        assert after is not None
        if not chosen.numel():
            return after
        computed = self._stage(k, all_senders(graph, chosen))[1]
        assert computed is not None
        return after.index_copy(0, chosen, computed[chosen])

    def _reads_labels(self, k: int) -> bool:
        """Whether labels after `k` stages can reach a node that shows none: through its neighbors, in a later stage."""
        return self.model.has_label_nodes and k <= self.model.num_stages - 2

    def _stage(self, k: int, block: LabelBlock) -> Nodes:
        own, first = block.nodes[: block.num_nodes], None
        if self.model.reads_first:
            first = self.states[0].index_select(0, own), self.labels[0]
        return self.model.stage(k, self.states[k].index_select(0, block.nodes), self.labels[k], block, first)

    def _encode(
        self, graph: LabelGraph, removal: Removal, rows: Tensor, undo: list[tuple[Tensor, Tensor, Tensor]]
    ) -> None:
        if not rows.numel():
            return
        task = self.layer_wise.task
        x = task.x.index_select(0, rows)
        if removal.kind == "features":
            x[rows == removal.node] = self._mean(removal.node)
        node_type = None if task.node_type is None else task.node_type[rows]
        inputs = self.model.batch_inputs(x, self.layer_wise.dtype, node_type)
        at_input = LabelEdges.from_label_of(graph.to_nodes.label_of[rows], graph.num_classes)
        self._overwrite(self.states[0], rows, self.model.encode(inputs, SampledLabelGraph(rows, [], at_input))[0], undo)

    @staticmethod
    def _overwrite(states: Tensor, rows: Tensor, new: Tensor, undo: list[tuple[Tensor, Tensor, Tensor]]) -> None:
        undo.append((states, rows, states[rows]))
        states[rows] = new.to(states.dtype)

    def _needed_for(self, node: int) -> list[Tensor]:
        """From `node` back to all that its prediction reads."""
        if self._needed is None or self._needed.node != node:
            mask = torch.zeros(self.graph.num_nodes, dtype=torch.bool, device=self.shown.device)
            mask[node] = True
            masks = [mask]
            for k in reversed(range(self.model.num_stages)):
                mask = mask.clone()
                mask[neighbors_of(self.graph.adjacency, mask.nonzero().flatten())] = True
                if self._reads_labels(k + 1):
                    mask[self.shown] = True
                masks.insert(0, mask)
            self._needed = _Needed(node, masks)
        return self._needed.masks


def _mark_classes(classes: Tensor, shows: Tensor, reached: Tensor) -> None:
    """Adds to `classes` `[C]` those that nodes in `reached` `[M]` show."""
    found = shows[reached]
    classes[found[found >= 0]] = True


def reruns(layer_wise: LayerWise, inference: Inference, nodes: Tensor) -> Iterator[tuple[Tensor, Rerun]]:
    """Yields groups of `nodes` `[n]` with what predicts them again, each group seeing the labels it sees at inference."""
    for own, shown in inference.groups(nodes):
        if ReachedStates.applies_to(layer_wise, inference):
            yield own, ReachedStates(layer_wise, shown)
        else:
            yield own, WholeGraph(layer_wise, inference, shown)
