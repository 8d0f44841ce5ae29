"""What a prediction rests on: how it changes when a shown label, an edge or the features of a node are removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from legnn.data import GraphData
from legnn.report.reached_states import ReachedStates
from legnn.report.removals import Removal, Rerun, WholeGraph
from legnn.runs import Ensemble, Run
from legnn.runs.averaging import apply_temperature
from legnn.training import Inference, LayerWise

MOST_NEIGHBORS = 40
"""Neighbors whose labels, edges and features are removed, and which are drawn."""
LARGEST = 10
SECONDS = 60.0
"""Nodes are explained until so much time is over, the first ones first."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What changes when something is removed."""

    kind: str
    node: int
    """Index in the graph of the node whose label, edge or features are removed."""
    change: float
    """Of the probability of the class that is predicted with everything in place."""
    becomes: int
    """The class that is predicted then."""


@dataclass(frozen=True, kw_only=True)
class Neighbor:
    """A node that another one receives from."""

    node: int
    """Its index in the graph."""
    shows: int
    """The class that it shows at inference, -1 for none."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The prediction of one node and what it rests on."""

    node: int
    """Its index in the graph."""
    p: np.ndarray
    """`[C]` probabilities."""
    neighbors: list[Neighbor]
    """Those that show a label first, no more than `MOST_NEIGHBORS`."""
    num_neighbors: int
    tried: int
    """How many removals were measured."""
    effects: list[Effect]
    """The largest ones, the largest first."""


def explain(
    run: Run | Ensemble,
    graph: GraphData,
    nodes: Sequence[int],
    *,
    device: str = "auto",
    seconds: float = SECONDS,
    on_node: Callable[[int], None] = lambda done: None,
) -> list[Explanation]:
    """Returns explanations of `nodes`, indices in `graph`, by computing the model again; no more when time is over."""
    until = time.monotonic() + seconds
    found: dict[int, Explanation] = {}
    with ExitStack() as stack:
        members = [stack.enter_context(one.inference(graph, device=device)) for one in _runs(run)]
        for own, predict in _groups(run, members, nodes):
            for node in own:
                if found and time.monotonic() > until:
                    break
                found[node] = _explain(graph, node, predict)
                on_node(len(found))
    return [found[node] for node in nodes if node in found]


_Member = tuple[LayerWise, Inference]


def _runs(run: Run | Ensemble) -> list[Run]:
    return [run] if isinstance(run, Run) else run.runs


def _groups(run: Run | Ensemble, members: Sequence[_Member], nodes: Sequence[int]) -> Iterator[tuple[list[int], Rerun]]:
    """Yields nodes and what predicts them again; of an ensemble, in the groups of its first member."""
    layer_wise, inference = members[0]
    chosen = torch.tensor(list(nodes), dtype=torch.long, device=layer_wise.task.train.device)
    if isinstance(run, Run):
        for own, rerun in reruns(layer_wise, inference, chosen):
            yield own.tolist(), rerun
        return
    weights = [member.weight for member in run.members]
    for own, _ in inference.groups(chosen):
        parts = [reruns(*member, own) for member in members]
        tables = [{node: rerun for some, rerun in part for node in some.tolist()} for part in parts]
        yield own.tolist(), _Mixture(tables, weights, run.about.temperature)


def reruns(layer_wise: LayerWise, inference: Inference, nodes: Tensor) -> Iterator[tuple[Tensor, Rerun]]:
    """Yields groups of `nodes` `[n]` with what predicts them again, from the labels that they see at inference."""
    for own, shown in inference.groups(nodes):
        if ReachedStates.applies_to(layer_wise, inference):
            yield own, ReachedStates(layer_wise, shown)
        else:
            yield own, WholeGraph(layer_wise, inference, shown)


class _Mixture:
    """The weighted mean of what the members predict."""

    def __init__(self, members: Sequence[dict[int, Rerun]], weights: Sequence[float], temperature: float) -> None:
        self.members, self.weights, self.temperature = members, weights, temperature

    def __call__(self, node: int, removal: Removal | None) -> Tensor:
        """`[C]` the probabilities of `node`."""
        rows = torch.stack([member[node](node, removal).double() for member in self.members])
        return apply_temperature(torch.tensor(self.weights, dtype=torch.double)[None] @ rows, self.temperature)[0]

    def shown_to(self, node: int) -> Tensor:
        """The nodes that show their labels to any member."""
        return torch.cat([member[node].shown_to(node) for member in self.members]).unique()


def _explain(graph: GraphData, node: int, predict: Rerun) -> Explanation:
    shows = torch.zeros(graph.num_nodes, dtype=torch.bool).index_fill(0, predict.shown_to(node).cpu(), True)
    shown = torch.where(shows, graph.y, -1).numpy()
    begin, end = graph.adjacency.rowptr[node : node + 2].tolist()
    sources = [one for one in dict.fromkeys(graph.adjacency.col[begin:end].tolist()) if one != node]
    sources.sort(key=lambda one: (shown[one] < 0, one))
    kept = sources[:MOST_NEIGHBORS]
    removals = [Removal("features", node)]
    for one in kept:
        removals += [Removal("label", one)] if shown[one] >= 0 else []
        removals += [Removal("edge", one), Removal("features", one)]
    p = predict(node, None).double().numpy()
    mine = int(p.argmax())
    effects = []
    for removal in removals:
        now = predict(node, removal).double().numpy()
        change = float(now[mine] - p[mine])
        effects.append(Effect(kind=removal.kind, node=removal.node, change=change, becomes=int(now.argmax())))
    effects.sort(key=lambda one: -abs(one.change))
    return Explanation(
        node=node,
        p=p,
        neighbors=[Neighbor(node=one, shows=int(shown[one])) for one in kept],
        num_neighbors=len(sources),
        tried=len(removals),
        effects=effects[:LARGEST],
    )
