"""Computes only what a removal reaches: for models that are computed stage by stage."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.graph.blocks import LabelBlock
from legnn.graph.sampling import full_label_block, full_node_block, neighbors_of
from legnn.nn import StagedModel
from legnn.nn.layer import Nodes
from legnn.ops.csr.label_edges import LabelEdges
from legnn.report.removals import MeanFeatures, Removal, without_edges
from legnn.training import Inference, LayerWise
from legnn.training.inference import to_probabilities


class _Needed(NamedTuple):
    """What the prediction of one node is computed from."""

    node: int
    masks: list[Tensor]
    """`[M]` bool, of the input and of the output of every stage."""


class _Before(NamedTuple):
    """Rows of states that were overwritten."""

    states: Tensor
    rows: Tensor
    values: Tensor


class ReachedStates:
    """Computes only what a removal reaches, stage by stage.

    States `H^k` of all nodes with nothing removed are kept. A removal reaches the nodes it is about; after each stage
    also those that receive from nodes whose state is another now, and the labels that such nodes show; through these
    labels, all nodes that show them. Of these, the nodes that the prediction needs are computed again.
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
        undo: list[_Before] = []
        labels = list(self.labels)
        try:
            self._compute(node, removal, undo)
            return self._probabilities(node)
        finally:
            for one in reversed(undo):
                one.states[one.rows] = one.values
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
                nodes, labels = self.model.stage(
                    k, nodes, labels, graph, first if self.model.uses_initial_state else None
                )
                states.append(nodes)
                of_labels.append(labels)
        return states, of_labels

    def _compute(self, node: int, removal: Removal, undo: list[_Before]) -> None:
        graph, shows = self.graph, self.graph.to_nodes.label_of.long()
        # nodes whose edges, label or features are others now, and in `moved` those whose states are
        touched = torch.zeros(graph.num_nodes, dtype=torch.bool, device=self.shown.device)
        touched[removal.node] = True
        if removal.kind == "edge":
            touched[node] = True
            graph = replace(graph, adjacency=without_edges(graph.adjacency, node, removal.node))
        elif removal.kind == "label":
            graph = self.layer_wise.task.show(self.shown[self.shown != removal.node])
        moved = torch.zeros_like(touched)
        if removal.kind != "edge":
            self._encode(graph, removal, moved, undo)
        classes = torch.zeros(graph.num_classes, dtype=torch.bool, device=touched.device)
        _mark_classes(classes, shows, touched)
        needed = self._needed_for(node)
        for k in range(self.model.num_stages):
            labels = self._labels_after(k, graph, classes, moved, shows)
            sends_other = moved | touched if self._reads_source_degree else moved
            rows = self._reached(graph, touched, moved, sends_other, classes, shows, needed[k + 1])
            moved = torch.zeros_like(touched)
            if rows.numel():
                self._overwrite(k + 1, rows, self._stage(k, full_node_block(graph, rows))[0], moved, undo)
            if labels is not None:
                self.labels[k + 1] = labels

    def _reached(
        self,
        graph: LabelGraph,
        touched: Tensor,
        moved: Tensor,
        sends_other: Tensor,
        classes: Tensor,
        shows: Tensor,
        needed: Tensor,
    ) -> Tensor:
        """The nodes `needed` that are touched or moved, receive something else, or show one of the `classes`."""
        rows = needed.nonzero().flatten()
        adjacency = graph.adjacency
        count = (adjacency.rowptr[rows + 1] - adjacency.rowptr[rows]).long()
        receives = torch.zeros(rows.numel(), dtype=torch.bool, device=rows.device)
        of_row = torch.repeat_interleave(torch.arange(rows.numel(), device=rows.device), count)
        receives[of_row[sends_other[neighbors_of(adjacency, rows)]]] = True
        label = shows[rows]
        receives |= (label >= 0) & classes[label.clamp(min=0)]
        return rows[receives | touched[rows] | moved[rows]]

    def _labels_after(self, k: int, graph: LabelGraph, classes: Tensor, moved: Tensor, shows: Tensor) -> Tensor | None:
        """The labels after stage `k`, where a later stage reads them for this prediction."""
        before = self.labels[k]
        if not self._reads_labels(k + 1) or before is None or self.labels[k + 1] is None:
            return None
        _mark_classes(classes, shows, moved)
        if graph.label_adjacency is not None and bool(classes.any()):
            classes[:] = True
        chosen = classes.nonzero().flatten()
        after = self.labels[k + 1]
        assert after is not None
        if not chosen.numel():
            return after
        computed = self._stage(k, full_label_block(graph, chosen))[1]
        assert computed is not None
        return after.index_copy(0, chosen, computed[chosen])

    def _reads_labels(self, k: int) -> bool:
        """Whether labels after `k` stages can reach a node that shows none: through its neighbors, in a later stage."""
        return self.model.has_label_nodes and k <= self.model.num_stages - 2

    def _stage(self, k: int, block: LabelBlock) -> Nodes:
        own, first = block.nodes[: block.num_nodes], None
        if self.model.uses_initial_state:
            first = self.states[0].index_select(0, own), self.labels[0]
        return self.model.stage(k, self.states[k].index_select(0, block.nodes), self.labels[k], block, first)

    def _encode(self, graph: LabelGraph, removal: Removal, moved: Tensor, undo: list[_Before]) -> None:
        task, rows = self.layer_wise.task, torch.tensor([removal.node], device=self.shown.device)
        x = self._mean(removal.node)[None] if removal.kind == "features" else task.x.index_select(0, rows)
        node_type = None if task.node_type is None else task.node_type[rows]
        inputs = self.model.batch_inputs(x, self.layer_wise.dtype, node_type)
        at_input = LabelEdges.from_label_of(graph.to_nodes.label_of[rows], graph.num_classes)
        states = self.model.encode(inputs, SampledLabelGraph(rows, [], at_input))[0]
        self._overwrite(0, rows, states, moved, undo)

    def _overwrite(self, k: int, rows: Tensor, new: Tensor, moved: Tensor, undo: list[_Before]) -> None:
        """Puts `new` in the place of states `H^k` of `rows`, and marks those that are not the same."""
        states = self.states[k]
        before, new = states[rows], new.to(states.dtype)
        undo.append(_Before(states, rows, before))
        states[rows] = new
        moved[rows] = (new != before).any(1)

    @cached_property
    def _reads_source_degree(self) -> bool:
        """Whether what a node sends depends on its degree or on whether it shows a label: tried on a few nodes."""
        degree = self.graph.adjacency.rowptr.diff()
        rows = (degree > 1).nonzero().flatten()[:20]
        if not rows.numel():
            return True
        block = full_node_block(self.graph, rows)
        degrees = block.source_degrees.clone()
        degrees[block.num_nodes :] += 3
        other = replace(block, source_degrees=degrees)
        stages = range(self.model.num_stages)
        return not all(torch.equal(self._stage(k, block)[0], self._stage(k, other)[0]) for k in stages)

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
