"""A sample from the seeds outward, over the kernels of one device.

A node keeps its number in every block: seeds come first, then those that the last layer reads, and so on. So the nodes
of a block, their degrees and the labels they show are the beginnings of what the input nodes have, and each node is
numbered and looked up once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.graph.label_graph import LabelEdges, LabelGraph
from legnn.ops.csr.adjacency import DrawnRows
from legnn.ops.sample.fanout import Fanout
from legnn.ops.sample.scratch import places


@dataclass(frozen=True, eq=False)
class Rows:
    """What edges are drawn from: the rows of the nodes, and those of the labels without the seeds."""

    rowptr: Tensor
    """`[M + 1]`."""
    col: Tensor
    """`[edges]`."""
    label_of: Tensor
    """`[M]` the class each node shows, -1 for none; of a seed it is not to be read."""
    degree: Tensor
    """`[M]`."""
    class_rowptr: Tensor
    """`[C + 1]`, as if no seed were in `class_col`."""
    class_col: Tensor
    """`[S]` the nodes that show each class, seeds included."""
    gaps: Tensor
    """`[H]` ascending: entry `e` of the class rows without seeds stands as many places later in `class_col` as there
    are gaps that are not above `e`."""
    every_label: bool
    """Whether label–label edges make every layer but the last compute all labels."""

    @property
    def num_classes(self) -> int:
        """`C`."""
        return self.class_rowptr.numel() - 1

    @classmethod
    def of(cls, graph: LabelGraph, seeds: Tensor) -> Rows:
        """The rows of `graph` when `seeds` show no label."""
        labels = graph.to_labels
        classes = labels.classes
        rowptr, gaps = classes.rowptr, classes.rowptr[:0]
        if graph.shown.numel():
            hidden = labels.slot[seeds]
            if hidden.device.type == "cpu":
                # elsewhere asking how many there are would make the host wait; the others are at the end and do no harm
                hidden = hidden[hidden < graph.shown.numel()]
            hidden = hidden.sort().values
            gaps = hidden - torch.arange(hidden.numel(), dtype=hidden.dtype, device=hidden.device)
            rowptr = rowptr - torch.searchsorted(hidden, rowptr, out_int32=True)
        adjacency, every = graph.adjacency, graph.label_adjacency is not None
        return cls(adjacency.rowptr, adjacency.col, labels.label_of, graph.degree, rowptr, classes.col, gaps, every)


class Step(NamedTuple):
    """What was drawn for one layer, for `R` nodes and `C` labels."""

    rowptr: Tensor
    """`[R + C + 1]` where the edges of each node begin, and after them those of each label."""
    col: Tensor
    """`[E]` the number of the node at the other end."""
    edge: Tensor | None
    """`[E]` which edge it is: of the adjacency, or of the class rows."""
    edges_of: Tensor
    """`[R]` how many edges each node has in all."""
    num_edges: int
    """How many of `E` are those of the nodes."""
    targets: int
    """`R`."""


class Found(NamedTuple):
    """The nodes that came up in a sample."""

    nodes: Tensor
    """`[N]` seeds first."""
    labels_of: Tensor
    """`[N]` the class each of them shows, -1 for none and for seeds."""
    degrees: Tensor
    """`[N]`."""
    shown: Tensor
    """`[S]` the numbers of those that show a label, ascending."""
    y: Tensor
    """`[S]` the class each of them shows."""
    showing: list[int]
    """For each step, how many of the nodes it drew for show a label: so many of `shown` they are."""


class Walk(Protocol):
    """One sample on its way."""

    def step(self, fanout: Fanout, key: tuple[int, int], *, edges: bool) -> Step:
        """Draw for every node found so far and every label that a step before this one has read."""
        ...

    def end(self) -> Found:
        """Everybody who was found. The scratch memory is as it was."""
        ...


class Kernels(Protocol):
    """What a device offers."""

    def start(self, rows: Rows, seeds: Tensor, place: Tensor) -> Walk:
        """A walk from `seeds`, with `place` `[M]` of zeros to work in."""
        ...


def sample(
    kernels: Kernels,
    graph: LabelGraph,
    seeds: Tensor,
    fanouts: Sequence[Fanout],
    key: tuple[int, int],
    *,
    edges: bool = False,
) -> SampledLabelGraph:
    """`legnn.graph.sample_label_graph`."""
    seeds = seeds.long()
    rows = Rows.of(graph, seeds)
    wanted = edges or graph.adjacency.weight is not None
    with places(graph.adjacency) as place:
        walk = kernels.start(rows, seeds, place)
        steps = [walk.step(fanouts[k], (key[0], key[1] ^ k), edges=wanted) for k in reversed(range(len(fanouts)))]
        found = walk.end()
    return _assembled(graph, rows, found, steps[::-1], fanouts, edges)


def _assembled(
    graph: LabelGraph,
    rows: Rows,
    found: Found,
    steps: Sequence[Step],
    fanouts: Sequence[Fanout],
    edges: bool,
) -> SampledLabelGraph:
    nodes, labels_of, num_classes = found.nodes, found.labels_of, graph.num_classes
    shown_by = (rows.class_rowptr[1:] - rows.class_rowptr[:-1]).long()
    # a layer reads what the one before it computed, the first reads all
    sizes = [nodes.numel(), *(step.targets for step in steps[:-1])]
    blocks = []
    for step, size, showing, fanout in zip(steps, sizes, found.showing[::-1], fanouts, strict=True):
        weight = None
        if graph.adjacency.weight is not None and step.edge is not None:
            weight = graph.adjacency.weight[step.edge[: step.num_edges]]
        blocks.append(
            LabelBlock(
                adjacency=DrawnRows(
                    step.rowptr[: step.targets + 1],
                    step.col[: step.num_edges],
                    weight,
                    size,
                    fanout,
                    step.edge[: step.num_edges] if edges and step.edge is not None else None,
                ),
                shown=found.shown[:showing],
                y=found.y[:showing],
                num_classes=num_classes,
                label_adjacency=graph.label_adjacency,
                nodes=nodes[:size],
                senders=_senders(step, labels_of, size, num_classes),
                degrees=found.degrees[:size],
                labels_of=labels_of[:size],
                edges_of=None if fanout is None else step.edges_of,
                shown_by=shown_by,
            )
        )
    return SampledLabelGraph(blocks, LabelEdges(found.shown, found.y, nodes.numel(), num_classes))


def _senders(step: Step, labels_of: Tensor, size: int, num_classes: int) -> LabelEdges:
    sender = step.col[step.num_edges :].long()
    return LabelEdges(sender, labels_of[sender].long(), size, num_classes)
