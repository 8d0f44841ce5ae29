"""Inference layer by layer, over all neighbors, for a graph that does not fit on the device at once.

Every layer is computed for all nodes that a later one needs, chunk by chunk, before the next begins: each node once a
layer, where predicting batch by batch would compute the same neighbors over and over. Equal to the full batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.graph import LabelBlock, LabelEdges, LabelGraph, SampledLabelGraph
from legnn.graph.sampling import full_label_block, full_node_block, neighbors_of
from legnn.nn import LEGNN, Model, StagedModel
from legnn.nn.layer import Nodes
from legnn.nn.model import Representations
from legnn.ops import class_sum, gather_rows
from legnn.training.batching import DevicePlan, Reduce, require_staged
from legnn.training.prefetch import map_ahead
from legnn.training.ranks import SINGLE_PROCESS, Ranks
from legnn.training.states import Location, StateStore, check_disk, choose_location
from legnn.training.task import Task

DEVICE_SHARE = 0.9
"""The part of the device's free memory that states and chunks may take together."""
MATRICES_OF_A_CHUNK = 3
"""Matrices of a chunk that are in memory at once."""

NODES_AT_A_TIME = 2**22
"""Nodes that are divided into chunks together."""

_First = tuple[StateStore, Tensor | None] | None
"""The states before the first stage, where later stages read them."""


class LayerWise:
    """Computes a model for any nodes of a graph in bounded memory of the device.

    The states after a stage, `[M, D]`, are stored where they fit (`states`). With several processes each computes its
    share of the chunks. A model that is not staged is computed at once, whatever memory that takes.

    Args:
        chunk_size: about how many nodes and edges are computed together; None computes all at once where that fits.
        location: where states lie; None for where they fit.
        plan: what to know of the device.
    """

    def __init__(
        self,
        model: Model,
        task: Task,
        device: torch.device,
        dtype: torch.dtype,
        *,
        chunk_size: int | None = None,
        location: Location | None = None,
        ranks: Ranks = SINGLE_PROCESS,
        plan: DevicePlan | None = None,
    ) -> None:
        self.model, self.task, self.device, self.dtype, self.ranks = model, task, device, dtype, ranks
        self.location, self.plan = location, plan or DevicePlan()
        self._last_needed: tuple[Tensor, Tensor, list[Tensor]] | None = None
        self.is_at_once = not isinstance(model, StagedModel)
        if isinstance(model, StagedModel):
            width = max(model.channels, model.in_channels)
            # a chunk has no more nodes than edges
            self.chunk_size = chunk_size or max(self.plan.chunk_bytes // (torch.float32.itemsize * width), 1)
            self.is_at_once = chunk_size is None and ranks.world_size == 1 and self.plan.at_once

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
                f"{name} has no representations of nodes; train a model with `model.architecture=legnn` and a backbone "
                "that has layers, such as gcn"
            )
        model = self.model.eval()
        graph = self.task.show(shown)
        if self.is_at_once:
            states, labels = model.embed(self._inputs, graph)
            rows = states.index_select(0, nodes).float()
        else:
            empty = model.unpad(torch.zeros(0, model.channels, device=nodes.device))
            rows, labels = self._staged_rows(graph, shown, nodes, empty, lambda states: model.unpad(states).float())
            labels = None if labels is None else model.unpad(labels)
        return Representations(rows, None if labels is None else labels.float())

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
        first = (state, labels) if self._staged.uses_initial_state else None
        last = self._staged.num_stages - 1
        for k in range(last):
            new = state.zeros_like()
            for chunk, read in self._chunks(graph, needed[k + 1], state):
                new.write(chunk.nodes[: chunk.num_nodes], self._compute(k, chunk, state, labels, first, read)[0])
            labels = self._labels(k, graph, state, labels, first)
            self.ranks.all_reduce(new.values)
            state = new
        wanted = needed[-1].nonzero().flatten()
        out = empty.new_zeros(wanted.numel(), *empty.shape[1:], device=wanted.device)
        if last < 0:
            # a model that reads no neighbors
            for part in self.ranks.shard(list(torch.arange(wanted.numel()).split(self.chunk_size))):
                out[part] = finish(state.read(wanted[part])).to(out.device)
        for chunk, read in self._chunks(graph, needed[-1], state) if last >= 0 else ():
            rows = finish(self._compute(last, chunk, state, labels, first, read)[0])
            out[torch.searchsorted(wanted, chunk.nodes[: chunk.num_nodes])] = rows.to(out.device)
        self.ranks.all_reduce(out)
        return out if torch.equal(wanted, nodes) else out[torch.searchsorted(wanted, nodes)], labels

    @cached_property
    def _inputs(self) -> Any:
        return self.model.prepare(self.task.x, self.dtype, self.task.node_type)

    @cached_property
    def _staged(self) -> StagedModel:
        return require_staged(self.model)

    def class_mean(self, graph: LabelGraph) -> Tensor | None:
        """`[C, F]` the mean inputs of the nodes that show each class, where the model uses it."""
        if not self._staged.uses_class_mean:
            return None
        total = torch.zeros(graph.num_classes, self._staged.in_channels, device=self.device)
        for part in graph.shown.split(self.chunk_size):
            edges = LabelEdges.from_label_of(graph.to_nodes.label_of[part], graph.num_classes).to(self.device)
            total += class_sum(edges, self.prepare(part))[:, : total.size(1)]
        return total / graph.label_count.to(total).clamp(min=1)[:, None]

    def prepare(self, nodes: Tensor) -> Tensor:
        """The inputs of `nodes` `[n]`, on the device."""
        node_type = None if self.task.node_type is None else gather_rows(self.task.node_type, nodes, self.device)
        return self._staged.prepare_rows(self.task.rows(nodes, self.device), self.dtype, node_type)

    def _encode(self, graph: LabelGraph, needed: Tensor) -> tuple[StateStore, Tensor | None]:
        """`H_N⁰` `[M, D]` where it is needed, and `H_L⁰` `[C, D]`."""
        mean = self.class_mean(graph)
        state: StateStore | None = None
        labels: Tensor | None = None
        for nodes in nodes_of(needed):
            for part in nodes.split(self.chunk_size):
                at_input = LabelEdges.from_label_of(graph.to_nodes.label_of[part], graph.num_classes).to(self.device)
                rows, labels = self._staged.encode(self.prepare(part), SampledLabelGraph(part, [], at_input, mean))
                state = state or self._make_states(rows, graph.num_nodes)
                state.write(part, rows)
        assert state is not None
        return state, labels

    def _make_states(self, rows: Tensor, num_nodes: int) -> StateStore:
        """States of all nodes, with rows like `rows`, in the first location where all that are needed at once fit."""
        stages = self._staged.num_stages
        # read, written, and those before the first stage
        copies = 1 + (stages > 1) + (self._staged.uses_initial_state and stages > 2)
        size = copies * num_nodes * rows[:1].nbytes
        of_device = int(DEVICE_SHARE * self.plan.free_bytes()) - MATRICES_OF_A_CHUNK * self.plan.chunk_bytes
        location = self.location or choose_location(size, of_device, self.plan.host_bytes())
        if location == "disk":
            check_disk(size, self.plan.host_bytes())
        return StateStore((num_nodes, rows.size(1)), rows.dtype, self.device, location, pin=self.plan.pin)

    def _labels(
        self, k: int, graph: LabelGraph, state: StateStore, labels: Tensor | None, first: _First
    ) -> Tensor | None:
        """The labels after stage `k`, from all nodes that show them."""
        if labels is None:
            return None
        out = torch.zeros_like(labels)
        for classes in self.ranks.shard(split_by_work(graph.to_labels.count, self.chunk_size)):
            computed = self._compute(k, full_label_block(graph, classes), state, labels, first)[1]
            assert computed is not None
            index = classes.to(out.device)
            out[index] = computed[index]
        return self.ranks.all_reduce(out)

    def _compute(
        self,
        k: int,
        chunk: LabelBlock,
        state: StateStore,
        labels: Tensor | None,
        first: _First,
        read: Tensor | None = None,
    ) -> Nodes:
        x = state.read(chunk.nodes) if read is None else read.to(self.device, non_blocking=True)
        initial: Nodes | None = None
        if first is not None:
            initial = first[0].read(chunk.nodes[: chunk.num_nodes]), first[1]
        return self._staged.stage(k, x, labels, chunk.to(self.device), initial)

    def _chunks(
        self, graph: LabelGraph, needed: Tensor, state: StateStore
    ) -> Iterator[tuple[LabelBlock, Tensor | None]]:
        """This process's share of the nodes `needed` `[M]` with all their edges, and what they read of `state`.

        With `plan.samplers`, the next chunks are sampled and read from the host's memory while one is computed.
        """

        def prepare(nodes: Tensor) -> tuple[LabelBlock, Tensor | None]:
            block = full_node_block(graph, nodes)
            return block, None if state.location == "device" else state.read_to_host(block.nodes)

        targets = (
            nodes[index]
            for nodes in nodes_of(needed)
            for index in self.ranks.shard(split_by_work(count_edges(graph, nodes), self.chunk_size))
        )
        if not self.plan.samplers:
            return map(prepare, targets)
        # what a graph computes once is computed by one thread
        full_node_block(graph, graph.shown[:0])
        return map_ahead(prepare, targets, self.plan.samplers)

    def _needed(self, graph: LabelGraph, shown: Tensor, nodes: Tensor) -> list[Tensor]:
        """`needed_masks`, reused while the same nodes are predicted, as validation does in every epoch."""
        last = self._last_needed
        if last is None or last[0] is not shown or last[1] is not nodes:
            last = shown, nodes, needed_masks(graph, nodes, self._staged, self.chunk_size)
            self._last_needed = last
        return last[2]


def needed_masks(graph: LabelGraph, nodes: Tensor, model: StagedModel, chunk_size: int) -> list[Tensor]:
    """`[M]` bool, of the input and of the output of every stage: from `nodes` back to those they depend on."""
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool, device=nodes.device).index_fill(0, nodes, True)
    masks = [mask]
    for k in reversed(range(model.num_stages)):
        mask = mask.clone()
        if not bool(mask.all()):
            for rows in nodes_of(masks[0]):
                for index in split_by_work(count_edges(graph, rows), chunk_size):
                    mask[neighbors_of(graph.adjacency, rows[index])] = True
        if model.has_label_nodes and k + 1 < model.num_stages:
            # labels are computed in every stage but the last, from all nodes that show them
            mask[graph.shown] = True
        masks.insert(0, mask)
    return masks


def nodes_of(mask: Tensor) -> Iterator[Tensor]:
    """The nodes of `mask` `[M]` in order, some at a time."""
    for number, part in enumerate(mask.split(NODES_AT_A_TIME)):
        nodes = part.nonzero().flatten()
        if nodes.numel():
            yield nodes + number * NODES_AT_A_TIME


def count_edges(graph: LabelGraph, nodes: Tensor) -> Tensor:
    """`[n]` how many edges each of `nodes` `[n]` receives."""
    return graph.adjacency.rowptr[nodes + 1] - graph.adjacency.rowptr[nodes]


def split_by_work(work: Tensor, chunk_size: int) -> list[Tensor]:
    """Positions `0 … n - 1` in runs of about `chunk_size` of `work` `[n]` each."""
    if work.numel() == 0:
        return []
    part = (work + 1).long().cumsum(0) // chunk_size
    sizes = torch.unique_consecutive(part, return_counts=True)[1].tolist()
    return list(torch.arange(work.numel(), device=work.device).split(sizes))
