"""Explanations of predictions: how they change without a shown label, an edge, or the features of the node."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from legnn.data import GraphData
from legnn.ops.csr.adjacency import Adjacency
from legnn.runs import Predictor
from legnn.runs.averaging import apply_temperature
from legnn.training import Inference, LayerWise

MOST_NEIGHBORS = 40
"""Neighbors that are drawn, and whose labels and edges are removed."""
MOST_EFFECTS = 10
SECONDS = 60.0
"""Time after which no further node is explained."""

Kind = Literal["label", "edge", "features"]


class Removal(NamedTuple):
    """A removed part of the input: the label that `node` shows, its edges to the predicted node, or its features."""

    kind: Kind
    node: int


class Effect(NamedTuple):
    """The change of a prediction without a part of its input."""

    removal: Removal
    change: float
    """Change of the probability of the predicted class."""
    becomes: int
    """The class that is predicted instead."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The prediction of one node, its neighbors, and the parts of the input with the largest effects."""

    node: int
    """Index in the graph."""
    p: np.ndarray
    """`[C]` probabilities."""
    neighbors: dict[int, int]
    """Nodes it receives from with the class of the label they show, -1 for none; at most `MOST_NEIGHBORS`."""
    num_neighbors: int
    num_removals: int
    effects: list[Effect]
    """At most `MOST_EFFECTS`, the largest first."""


class Rerun:
    """Predicts one node of a graph again, by a run on the whole graph without a part of its input.

    Args:
        shown: the nodes that show their labels when the node is predicted.
    """

    def __init__(self, layer_wise: LayerWise, inference: Inference, node: int) -> None:
        self.layer_wise, self.inference = layer_wise, inference
        self.node = torch.tensor([node], device=layer_wise.task.train.device)
        ((_, self.shown),) = inference.groups(self.node)

    def __call__(self, removal: Removal) -> Tensor:
        """`[C]` the probabilities of the node."""
        task, shown = self.layer_wise.task, self.shown
        if removal.kind == "label":
            shown = shown[shown != removal.node]
        elif removal.kind == "edge":
            adjacency = without_edges(task.graph.adjacency, int(self.node), removal.node)
            task = replace(task, graph=replace(task.graph, adjacency=adjacency))
        else:
            # the mean of all nodes of its type says nothing of the node
            same_type = slice(None) if task.node_type is None else task.node_type == task.node_type[removal.node]
            x = task.x.clone()
            x[removal.node] = task.x[same_type].mean(0)
            task = replace(task, x=x)
        old = self.layer_wise
        predictor = LayerWise(old.model, task, old.device, old.dtype, plan=old.plan)
        return replace(self.inference, predictor=predictor, task=task).proba(self.node, shown)[0].cpu()


def explain(
    run: Predictor,
    graph: GraphData,
    nodes: Sequence[int],
    *,
    device: str = "auto",
    seconds: float = SECONDS,
) -> list[Explanation]:
    """Returns explanations of `nodes`, indices in `graph`; of the first of them where the time is over."""
    end = time.monotonic() + seconds
    explanations: list[Explanation] = []
    weight = torch.tensor(run.weights, dtype=torch.double)

    def mix(members_p: Iterable[Tensor]) -> np.ndarray:
        p = torch.stack([p.double().cpu() for p in members_p])
        return np.asarray(apply_temperature(torch.tensordot(weight, p, 1), run.temperature).numpy())

    with ExitStack() as stack:
        members = [stack.enter_context(member.inference(graph, device=device)) for member in run.members]
        ascending = sorted(set(nodes))
        p_of = mix(
            inference.proba_of(torch.tensor(ascending, device=inference.fold.device)) for _, inference in members
        )
        reported = dict(zip(ascending, p_of, strict=True))
        for node in nodes:
            if explanations and time.monotonic() > end:
                break
            reruns = [Rerun(*member, node) for member in members]
            shown = torch.cat([rerun.shown for rerun in reruns]).unique().cpu()
            neighbors, num_neighbors = _neighbors(graph, node, shown)
            removals = [Removal("features", node), *(Removal("edge", neighbor) for neighbor in neighbors)]
            removals += [Removal("label", neighbor) for neighbor, shows in neighbors.items() if shows >= 0]
            p = reported[node]
            predicted = int(p.argmax())
            effects = []
            for removal in removals:
                changed = mix(rerun(removal)[None] for rerun in reruns)[0]
                change = float(changed[predicted] - p[predicted])
                effects.append(Effect(removal, change, int(changed.argmax())))
            explanations.append(
                Explanation(
                    node=node,
                    p=p,
                    neighbors=neighbors,
                    num_neighbors=num_neighbors,
                    num_removals=len(removals),
                    effects=sorted(effects, key=lambda effect: -abs(effect.change))[:MOST_EFFECTS],
                )
            )
    return explanations


def without_edges(adjacency: Adjacency, first: int, second: int) -> Adjacency:
    """Returns the adjacency without the edges between two nodes, in either direction."""
    keep = torch.ones(adjacency.num_edges, dtype=torch.bool, device=adjacency.col.device)
    removed = torch.zeros_like(adjacency.rowptr)
    for row, col in {(first, second), (second, first)}:
        begin, end = adjacency.rowptr[row : row + 2].tolist()
        is_between = adjacency.col[begin:end] == col
        keep[begin:end] &= ~is_between
        removed[row + 1] += is_between.sum().to(removed.dtype)
    weight = None if adjacency.weight is None else adjacency.weight[keep]
    rowptr = adjacency.rowptr - removed.cumsum(0, dtype=removed.dtype)
    return Adjacency(rowptr, adjacency.col[keep], weight, adjacency.num_cols)


def _neighbors(graph: GraphData, node: int, shown: Tensor) -> tuple[dict[int, int], int]:
    """Returns the neighbors of a node with the classes they show, as in `Explanation`, and the number of all."""
    label = torch.full_like(graph.y, -1).index_copy(0, shown, graph.y[shown]).numpy()
    begin, end = graph.adjacency.rowptr[node : node + 2].tolist()
    sources = sorted(set(graph.adjacency.col[begin:end].tolist()) - {node}, key=lambda k: (label[k] < 0, k))
    return {source: int(label[source]) for source in sources[:MOST_NEIGHBORS]}, len(sources)
