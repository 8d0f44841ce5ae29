"""Inference layer by layer, over all neighbors, for a graph that does not fit on the device at once.

Every layer is computed for all nodes that a later one needs, chunk by chunk, before the next begins: each node once a
layer, where predicting batch by batch would compute the same neighbors over and over. Equal to the full batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.graph import LabelBlock, LabelEdges, LabelGraph, SampledLabelGraph
from legnn.graph.sampling import all_neighbors, all_senders, neighbors_of
from legnn.nn import LEGNN, Model, StagedModel
from legnn.nn.base import Nodes
from legnn.nn.model import Representations
from legnn.ops import class_sum, gather_rows
from legnn.training.memory import SINGLE, Size, total_bytes
from legnn.training.protocols import Reduce, require_staged
from legnn.training.ranks import SINGLE_PROCESS, Ranks
from legnn.training.task import Task

CHUNK_BYTES = {"cpu": 2**25, "cuda": 2**32}
"""Bytes of one matrix of a chunk, by device: enough to keep it busy. A chunk has no more nodes than edges."""

AT_ONCE_SHARE = 0.25
"""A graph whose inference takes no more than this part of the memory is computed at once, which is faster."""


class _Needed(NamedTuple):
    """Which nodes each stage is computed for, kept while the same nodes are predicted."""

    shown: Tensor
    nodes: Tensor
    masks: list[Tensor]
    """`[M]` bool: of the input, and of the output of every stage."""


class LayerWise:
    """Computes a model for any nodes of a graph in bounded memory of the device.

    The states after a stage, `[M, D]`, are kept on the device of the graph. With several processes each computes its
    share of the chunks. A model that is not staged is computed at once, whatever memory that takes.

    Args:
        chunk_size: about how many nodes and edges are computed together; None computes all at once where that fits.
    """

    def __init__(
        self,
        model: Model,
        task: Task,
        device: torch.device,
        dtype: torch.dtype,
        *,
        chunk_size: int | None = None,
        ranks: Ranks = SINGLE_PROCESS,
    ) -> None:
        self.model, self.task, self.device, self.dtype, self.ranks = model, task, device, dtype, ranks
        self._kept: _Needed | None = None
        self.is_at_once = not isinstance(model, StagedModel)
        if isinstance(model, StagedModel):
            width = max(model.channels, model.in_channels)
            self.chunk_size = chunk_size or max(CHUNK_BYTES[device.type] // (SINGLE * width), 1)
            self.is_at_once = chunk_size is None and ranks.world_size == 1 and self._fits(model)

    @torch.no_grad()
    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce = lambda logits: logits) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, the nodes `shown` showing their labels; `[n, …]`.

        `shown` and `nodes` are recognized by identity, so their contents must not change.
        """
        self.model.eval()
        graph = self.task.show(shown)
        if self.is_at_once:
            return reduce(self.model(self._inputs, graph).index_select(0, nodes))
        # `reduce` of no logits gives the shape and type of a row
        empty = reduce(torch.zeros(0, graph.num_classes, device=nodes.device))
        return self._staged_rows(graph, shown, nodes, empty, lambda states: reduce(self._staged.classify(states)))[0]

    @torch.no_grad()
    def representations(self, shown: Tensor, nodes: Tensor) -> Representations:
        """`Z_N` of `nodes` `[n]`, in single precision, and the labels as the last layer reads them; as in `logits`."""
        if not isinstance(self.model, LEGNN):
            name = type(self.model).__name__
            raise InputError(
                f"{name} has no representations of nodes; train a model with `architecture=legnn` and a backbone that "
                "has layers, such as gcn"
            )
        model, channels = self.model.eval(), self.model.channels
        graph = self.task.show(shown)
        if self.is_at_once:
            states, labels = model.embed(self._inputs, graph)
            rows = states.index_select(0, nodes).float()
        else:
            empty = torch.zeros(0, channels, device=nodes.device)
            rows, labels = self._staged_rows(graph, shown, nodes, empty, lambda states: states[:, :channels].float())
        return Representations(rows, None if labels is None else labels[:, :channels].float())

    def _staged_rows(
        self, graph: LabelGraph, shown: Tensor, nodes: Tensor, empty: Tensor, finish: Reduce
    ) -> tuple[Tensor, Tensor | None]:
        """`finish` of the states of `nodes` after the last stage, rows like those of `empty` `[0, …]`.

        Beside them, the labels that the last stage reads.
        """
        if nodes.numel() == 0:
            return empty, None
        needed = self._needed(graph, shown, nodes)
        state, labels = self._encode(graph, needed[0])
        first = (state, labels) if self._staged.reads_first else None
        last = self._staged.num_stages - 1
        for k in range(last):
            new = torch.zeros_like(state)
            for chunk in self._chunks(graph, needed[k + 1]):
                new[chunk.nodes[: chunk.num_nodes]] = self._compute(k, chunk, state, labels, first)[0].to(new.device)
            labels = self._labels(k, graph, state, labels, first)
            state = self.ranks.all_reduce(new)
        wanted = needed[-1].nonzero().flatten()
        out = empty.new_zeros(wanted.numel(), *empty.shape[1:], device=state.device)
        if last < 0:
            # a model that reads no neighbors
            for own in self.ranks.shard(list(torch.arange(wanted.numel()).split(self.chunk_size))):
                out[own] = finish(state[wanted[own]].to(self.device)).to(out.device)
        for chunk in self._chunks(graph, needed[-1]) if last >= 0 else ():
            rows = finish(self._compute(last, chunk, state, labels, first)[0])
            out[torch.searchsorted(wanted, chunk.nodes[: chunk.num_nodes])] = rows.to(out.device)
        return self.ranks.all_reduce(out)[torch.searchsorted(wanted, nodes)], labels

    def _fits(self, model: StagedModel) -> bool:
        """Whether all nodes can be computed at once; by the total memory, so that the answer is always the same."""
        x, adjacency = self.task.x, self.task.graph.adjacency
        if x.device.type != self.device.type:
            return False
        of_data = x.size(0), adjacency.num_edges, x.size(1), self.task.graph.num_classes
        size = Size(*of_data, model.channels, model.num_stages, model.edge_matrices)
        return size.inference_bytes <= AT_ONCE_SHARE * total_bytes(self.device)

    @cached_property
    def _inputs(self) -> Any:
        return self.model.inputs(self.task.x, self.dtype, self.task.node_type)

    @cached_property
    def _staged(self) -> StagedModel:
        return require_staged(self.model)

    def class_mean(self, graph: LabelGraph) -> Tensor | None:
        """`[C, F]` the mean inputs of the nodes that show each class, where the model uses it."""
        if not self._staged.uses_class_mean:
            return None
        total = torch.zeros(graph.num_classes, self._staged.in_channels, device=self.device)
        for own in graph.shown.split(self.chunk_size):
            edges = LabelEdges.from_label_of(graph.to_nodes.label_of[own], graph.num_classes).to(self.device)
            total += class_sum(edges, self.inputs(own))[:, : total.size(1)]
        return total / graph.label_count.to(total).clamp(min=1)[:, None]

    def inputs(self, nodes: Tensor) -> Tensor:
        """The inputs of `nodes` `[n]`, on the device."""
        node_type = None if self.task.node_type is None else gather_rows(self.task.node_type, nodes, self.device)
        return self._staged.batch_inputs(self.task.rows(nodes, self.device), self.dtype, node_type)

    def _encode(self, graph: LabelGraph, needed: Tensor) -> tuple[Tensor, Tensor | None]:
        """`H_N⁰` `[M, D]` where it is needed, on the device of the graph, and `H_L⁰` `[C, D]`."""
        mean = self.class_mean(graph)
        state: Tensor | None = None
        labels: Tensor | None = None
        for own in needed.nonzero().flatten().split(self.chunk_size):
            at_input = LabelEdges.from_label_of(graph.to_nodes.label_of[own], graph.num_classes).to(self.device)
            rows, labels = self._staged.encode(self.inputs(own), SampledLabelGraph(own, [], at_input, mean))
            if state is None:
                state = rows.new_zeros(graph.num_nodes, rows.size(1), device=graph.shown.device)
            state[own] = rows.to(state.device)
        assert state is not None
        return state, labels

    def _labels(
        self, k: int, graph: LabelGraph, state: Tensor, labels: Tensor | None, first: Nodes | None
    ) -> Tensor | None:
        """The labels after stage `k`, from all nodes that show them."""
        if labels is None:
            return None
        out = torch.zeros_like(labels)
        for classes in self.ranks.shard(_split(graph.to_labels.count, self.chunk_size)):
            computed = self._compute(k, all_senders(graph, classes), state, labels, first)[1]
            assert computed is not None
            mine = classes.to(out.device)
            out[mine] = computed[mine]
        return self.ranks.all_reduce(out)

    def _compute(self, k: int, chunk: LabelBlock, state: Tensor, labels: Tensor | None, first: Nodes | None) -> Nodes:
        x = state.index_select(0, chunk.nodes).to(self.device)
        if first is not None:
            own = chunk.nodes[: chunk.num_nodes]
            first = first[0].index_select(0, own).to(self.device), first[1]
        return self._staged.stage(k, x, labels, chunk.to(self.device), first)

    def _chunks(self, graph: LabelGraph, needed: Tensor) -> Iterator[LabelBlock]:
        """This process's share of the nodes `needed` `[M]`, with all their edges."""
        nodes = needed.nonzero().flatten()
        for index in self.ranks.shard(_split(_edges(graph, nodes), self.chunk_size)):
            yield all_neighbors(graph, nodes[index])

    def _needed(self, graph: LabelGraph, shown: Tensor, nodes: Tensor) -> list[Tensor]:
        # validation predicts the same nodes in every epoch
        if self._kept is None or self._kept.shown is not shown or self._kept.nodes is not nodes:
            self._kept = _Needed(shown, nodes, self._masks(graph, nodes))
        return self._kept.masks

    def _masks(self, graph: LabelGraph, nodes: Tensor) -> list[Tensor]:
        """From `nodes` back to the nodes whose features they depend on."""
        adjacency = graph.adjacency
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool, device=nodes.device).index_fill(0, nodes, True)
        masks = [mask]
        stages = self._staged.num_stages
        for k in reversed(range(stages)):
            mask = mask.clone()
            if not bool(mask.all()):
                rows = mask.nonzero().flatten()
                for index in _split(_edges(graph, rows), self.chunk_size):
                    mask[neighbors_of(adjacency, rows[index])] = True
            if self._staged.has_label_nodes and k + 1 < stages:
                # labels are computed in every stage but the last, from all nodes that show them
                mask[graph.shown] = True
            masks.insert(0, mask)
        return masks


def _edges(graph: LabelGraph, nodes: Tensor) -> Tensor:
    return graph.adjacency.rowptr[nodes + 1] - graph.adjacency.rowptr[nodes]


def _split(work: Tensor, chunk_size: int) -> list[Tensor]:
    """Positions `0 … n - 1` in runs of about `chunk_size` of `work` `[n]` each."""
    if work.numel() == 0:
        return []
    part = (work + 1).long().cumsum(0) // chunk_size
    sizes = torch.unique_consecutive(part, return_counts=True)[1].tolist()
    return list(torch.arange(work.numel(), device=work.device).split(sizes))
