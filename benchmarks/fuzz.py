"""Random calls of `legnn.graph` and `legnn.nn`, valid and wrong ones, in processes of their own.

    python -m benchmarks.fuzz                  # 2,000 calls; a list of failures by kind
    python -m benchmarks.fuzz --only 137       # one call in this process, with its traceback

A seed determines a call. A valid call has to give the result of a dense computation (of a sample with all neighbors:
that of the whole graph; of a model: the same after the nodes are renumbered). A wrong call has to raise `InputError`
with a message that names the argument. Calls that may do either, such as a mask in the place of an index, have to do
one of the two. A crash is attributed to the call that a process had begun.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.sampler import NodeSamplerInput

from legnn.config.model import AttentionSettings
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph, sample_label_graph, select_training_nodes
from legnn.graph.pyg import LABEL, NODE, LabelGraphSampler, hetero_data
from legnn.nn import GAT, GCN, LEGNN, SAGE, ModelSettings
from legnn.nn.reference import dense_blocks, dense_layer

ROOT = Path(__file__).resolve().parents[1]
CALLS_PER_PROCESS = 100
SECONDS_PER_PROCESS = 300
VALID = 0.35
"""Part of the calls that are valid."""
IN, OUT, HEADS = 5, 6, 2
TINY, HUGE = 10**7, 10**9
"""Indices so far outside that reading there ends the process."""


class WrongResultError(Exception):
    """A call returned something else than the dense computation."""


class CSRArrays(NamedTuple):
    """What `Adjacency.from_csr` reads."""

    rowptr: np.ndarray
    col: np.ndarray
    weight: np.ndarray | None


@dataclass(frozen=True)
class Change:
    """How the arguments of a valid call are changed."""

    argument: str
    """The name of the changed argument, as a pattern for the message of the error."""
    name: str
    value: Any
    expects: Literal["error", "either"] = "error"

    def __str__(self) -> str:
        return f"{self.argument}: {self.name}"

    def is_named_by(self, message: str) -> bool:
        """Whether a message has the name of the argument as a word."""
        return bool(re.search(rf"\b({self.argument})\b", message))


@dataclass(frozen=True)
class Call:
    """One call; `run` makes it and compares its result."""

    target: str
    change: Change | None
    run: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.target} ({self.change or 'valid'})"


class Failure(NamedTuple):
    """A call with another outcome than it should have."""

    seed: int
    call: str
    kind: str
    detail: str


@dataclass(frozen=True)
class Case:
    """A valid graph with features."""

    nodes: int
    classes: int
    edge_index: Tensor
    weight: Tensor | None
    shown: Tensor
    y: Tensor
    """`[S]` classes of the nodes shown."""
    x: Tensor
    labels: Tensor
    dtype: torch.dtype

    @property
    def adjacency(self) -> Adjacency:
        """The graph as the library stores it."""
        return Adjacency.from_edge_index(self.edge_index, self.nodes, self.weight)

    @property
    def graph(self) -> LabelGraph:
        """The label graph in which `shown` show `y`."""
        return LabelGraph.without_labels(self.adjacency, self.classes).show(self.shown, self.y)

    def renumbered(self, order: Tensor) -> Case:
        """The same graph, whose node `order[i]` is now node `i`."""
        position = order.argsort()
        edge_index, shown = position[self.edge_index], position[self.shown]
        return replace(self, edge_index=edge_index, shown=shown, x=self.x[order])


def draw_case(rng: random.Random, least_nodes: int = 0) -> Case:
    """Isolated nodes, self-loops and parallel edges are likely; half of the graphs have weights."""
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    nodes = max(least_nodes, rng.choice([0, 1, 2, 3, rng.randint(4, 60), rng.randint(4, 60)]))
    edges = rng.randint(0, 4 * nodes) if rng.random() < 0.9 else 0
    classes = rng.randint(1, 5)
    # kernels compute in single precision, plain PyTorch in double
    dtype = rng.choice([torch.float32, torch.float32, torch.float32, torch.float64])
    edge_index = torch.randint(0, max(nodes, 1), (2, edges), generator=generator)
    weight = torch.rand(edges, generator=generator, dtype=dtype) + 0.1 if rng.random() < 0.5 else None
    shown = torch.randperm(nodes, generator=generator)[: rng.randint(0, nodes)]
    return Case(
        nodes,
        classes,
        edge_index,
        weight,
        shown,
        torch.randint(0, classes, (shown.numel(),), generator=generator),
        torch.randn(nodes, IN, generator=generator, dtype=dtype),
        torch.randn(classes, IN, generator=generator, dtype=dtype),
        dtype,
    )


# wrong arguments


def wrong_indices(argument: str, index: Tensor, bound: int, *, unique: bool) -> list[Change]:
    """Indices below `bound` in forms that are wrong, or may be refused; `index` is valid."""
    changes = [
        Change(argument, "just outside", torch.cat([index, torch.tensor([bound])])),
        Change(argument, "far outside", torch.cat([index, torch.tensor([TINY])])),
        Change(argument, "negative", torch.cat([index, torch.tensor([-1])])),
        Change(argument, "very negative", torch.cat([index, torch.tensor([-HUGE])])),
        Change(argument, "two-dimensional", index[None]),
        Change(argument, "a mask of another length", torch.ones(bound + 1, dtype=torch.bool)),
    ]
    if index.numel():
        changes += [
            Change(argument, "floating", index.float()),
            Change(argument, "int32", index.int(), "either"),
        ]
    if unique and index.numel():
        changes.append(Change(argument, "repeated", torch.cat([index, index[:1]])))
    return changes


def wrong_weights(argument: str, count: int, dtype: torch.dtype) -> list[Change]:
    """Weights of `count` edges that cannot be."""
    ones = torch.ones(count, dtype=dtype)
    changes = [
        Change(argument, "too many", torch.ones(count + 3, dtype=dtype)),
        Change(argument, "two-dimensional", ones[:, None]),
    ]
    if count:
        first = torch.arange(count) == 0
        values = {"NaN": torch.nan, "infinite": torch.inf, "negative": -1.0, "zero": 0.0}
        changes += [Change(argument, name, ones.masked_fill(first, value)) for name, value in values.items()]
        changes += [
            Change(argument, "too few", ones[1:]),
            Change(argument, "complex", ones.to(torch.complex64)),
            Change(argument, "with a gradient", ones.clone().requires_grad_()),
        ]
    return changes


def wrong_matrices(argument: str, x: Tensor) -> list[Change]:
    """Matrices that cannot stand for `x`."""
    rows, columns = x.shape
    changes = [
        Change(argument, "too many rows", x.new_ones(rows + 2, columns)),
        Change(argument, "too many columns", x.new_ones(rows, columns + 1)),
        Change(argument, "too few columns", x.new_ones(rows, columns - 1)),
        Change(argument, "one-dimensional", x.new_ones(rows)),
        Change(argument, "integers", torch.ones(rows, columns, dtype=torch.long)),
        Change(argument, "booleans", torch.ones(rows, columns, dtype=torch.bool)),
        Change(argument, "complex", torch.ones(rows, columns, dtype=torch.complex64)),
    ]
    return changes + ([Change(argument, "too few rows", x[1:])] if rows else [])


def wrong_fanouts(argument: str = "fanout") -> list[Change]:
    """Numbers of neighbors that cannot be."""
    values: dict[str, tuple[Any, ...]] = {"negative": (-1, 2), "fraction": (2, 2.5), "infinite": (float("inf"), 2)}
    return [Change(argument, name, value) for name, value in values.items()]


def draw_change(rng: random.Random, changes: list[Change]) -> Change | None:
    """One of them, or none."""
    return None if rng.random() < VALID else rng.choice(changes)


def may_succeed(change: Change | None) -> bool:
    """Whether the call may return a result, which is then compared."""
    return change is None or change.expects == "either"


def changed(change: Change | None, **arguments: Any) -> dict[str, Any]:
    """The arguments of a call, with the change."""
    if change is not None:
        name = next(name for name in arguments if re.fullmatch(change.argument, name))
        arguments[name] = change.value
    return arguments


def require_close(result: Any, expected: Any, dtype: torch.dtype = torch.float64) -> None:
    """Raises `WrongResultError` unless the tensors agree in the precision of `dtype`."""
    if result.shape != expected.shape:
        raise WrongResultError(f"shape {tuple(result.shape)} for {tuple(expected.shape)}")
    expected = expected.double()
    tolerance = 1e-8 if dtype == torch.float64 else 3e-4
    scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    error = float((result.double() - expected).abs().max()) if expected.numel() else 0.0
    if not error <= tolerance * scale:
        raise WrongResultError(f"differs by {error:.3g} of {scale:.3g}")


def dense_adjacency(case: Case) -> Tensor:
    """`A` `[M, M]` from the list of edges, rows are targets."""
    weight = torch.ones(case.edge_index.size(1)) if case.weight is None else case.weight
    dense = torch.zeros(case.nodes, case.nodes, dtype=torch.float64)
    source, target = case.edge_index
    return dense.index_put((target, source), weight.double(), accumulate=True)


def dense_labels(case: Case) -> Tensor:
    """`Y` `[M, C]`."""
    dense = torch.zeros(case.nodes, case.classes, dtype=torch.float64)
    dense[case.shown, case.y] = 1
    return dense


# the calls


def check_adjacency(adjacency: Adjacency, case: Case, change: Change | None) -> None:
    """Edges, degrees and the transpose."""
    if not may_succeed(change):
        return
    dense = dense_adjacency(case)
    blocks = dense_blocks(LabelGraph.without_labels(adjacency, 1), torch.float64)
    require_close(blocks[0], dense)
    require_close(adjacency.degree, dense.sum(1), torch.float32)
    transposed = dense_blocks(LabelGraph.without_labels(adjacency.transpose, 1), torch.float64)
    require_close(transposed[0], dense.T)


def call_from_edge_index(rng: random.Random) -> Call:
    case = draw_case(rng)
    edges, count = case.edge_index, case.edge_index.size(1)
    outside = torch.full((2, 1), case.nodes)
    change = draw_change(
        rng,
        [
            Change("edge_index", "just outside", torch.cat([edges, outside], 1)),
            Change("edge_index", "far outside", torch.cat([edges, outside + HUGE], 1)),
            Change("edge_index", "negative", torch.cat([edges, -torch.ones_like(outside)], 1)),
            Change("edge_index", "floating", edges.float()),
            Change("edge_index", "booleans", edges.bool()),
            Change("edge_index", "one-dimensional", edges.flatten()),
            Change("edge_index", "three rows", torch.cat([edges, edges[:1]])),
            Change("edge_index", "int32", edges.int(), "either"),
            Change("num_nodes", "negative", -1),
            *wrong_weights("edge_weight", count, case.dtype),
        ],
    )
    arguments = changed(change, edge_index=edges, num_nodes=case.nodes, edge_weight=case.weight)
    return Call(
        "Adjacency.from_edge_index",
        change,
        lambda: check_adjacency(Adjacency.from_edge_index(**arguments), case, change),
    )


def call_from_csr(rng: random.Random) -> Call:
    case = draw_case(rng, least_nodes=1)
    order = (case.edge_index[1] * case.nodes + case.edge_index[0]).argsort(stable=True)
    col = case.edge_index[0, order].numpy()
    counts = torch.bincount(case.edge_index[1], minlength=case.nodes).numpy()
    rowptr = np.concatenate([[0], counts.cumsum()])
    weight = None if case.weight is None else case.weight[order].numpy()
    valid = CSRArrays(rowptr, col, weight)
    changes = [
        Change("csr|col", "column just outside", valid._replace(col=col.clip(min=case.nodes))),
        Change("csr|col", "column far outside", valid._replace(col=np.full_like(col, TINY))),
        Change("csr|col", "negative column", valid._replace(col=np.full_like(col, -1))),
        Change("csr|rowptr", "rows end too late", valid._replace(rowptr=rowptr + (rowptr == rowptr[-1]) * 5)),
        Change("csr|rowptr", "rows descend", valid._replace(rowptr=rowptr[::-1].copy())),
    ]
    changes += [
        Change("csr|weight", change.name, valid._replace(weight=change.value.detach().numpy()))
        for change in wrong_weights("weight", len(col), case.dtype)
        if change.name != "with a gradient"
    ]
    # without an edge only the end of the rows can be wrong
    change = draw_change(rng, changes if len(col) else changes[3:4])
    csr = valid if change is None else change.value
    return Call(
        "Adjacency.from_csr",
        change,
        lambda: check_adjacency(Adjacency.from_csr(csr, num_cols=case.nodes), case, change),
    )


def call_show(rng: random.Random) -> Call:
    case = draw_case(rng)
    mask = torch.zeros(case.nodes, dtype=torch.bool)
    mask[case.shown] = True
    changes = wrong_indices("shown", case.shown, case.nodes, unique=True)
    changes = [
        change if change.value.size(0) == case.y.numel() or change.value.dtype == torch.bool
        else Change(change.argument, change.name, (change.value, torch.cat([case.y, case.y.new_zeros(1)])))
        for change in changes
        if change.name != "two-dimensional"
    ]  # fmt: skip
    changes += wrong_indices("y", case.y, case.classes, unique=False)
    changes += [Change("y", "too many", torch.cat([case.y, case.y.new_zeros(2)]))]
    # a mask shows nodes in their order; a class is then listed for each of them in this order
    changes += [Change("shown", "a mask", (mask, case.y[case.shown.argsort()]), "either")]
    change = draw_change(rng, changes)
    shown, y = case.shown, case.y
    if change is not None and change.argument == "shown":
        shown, y = change.value if isinstance(change.value, tuple) else (change.value, y)
    elif change is not None:
        # a class more is one of a node more, where there is one
        y = change.value
        if y.dim() == 1 and y.dtype != torch.bool and y.numel() == shown.numel() + 1 and shown.numel() < case.nodes:
            shown = torch.cat([shown, (~mask).nonzero()[0]])
    layer, _ = make_layer(rng, rng.choice(list(LAYERS)), case)

    def run() -> None:
        graph = LabelGraph.without_labels(case.adjacency, case.classes).show(shown, y)
        if may_succeed(change):
            require_close(dense_blocks(graph, torch.float64)[1], dense_labels(case))
        run_layer(layer, case.x, case.labels, graph, change)

    return Call("LabelGraph.show", change, run)


def call_hide(rng: random.Random) -> Call:
    case = draw_case(rng)
    nodes = torch.randperm(case.nodes, generator=torch.Generator().manual_seed(rng.getrandbits(32)))[:7]
    mask = torch.zeros(case.nodes, dtype=torch.bool)
    mask[nodes] = True
    changes = wrong_indices("nodes", nodes, case.nodes, unique=False)
    changes += [Change("nodes", "a mask", mask, "either"), Change("nodes", "repeated", nodes.repeat(2), "either")]
    change = draw_change(rng, changes)
    arguments = changed(change, nodes=nodes)

    def run() -> None:
        graph = case.graph.hide(**arguments)
        if may_succeed(change):
            hidden = dense_labels(case).masked_fill(mask[:, None], 0)
            require_close(dense_blocks(graph, torch.float64)[1], hidden)

    return Call("LabelGraph.hide", change, run)


def call_without_labels(rng: random.Random) -> Call:
    case = draw_case(rng)
    C = case.classes
    among = torch.rand(C, C, dtype=case.dtype, generator=torch.Generator().manual_seed(rng.getrandbits(32)))
    change = draw_change(
        rng,
        [
            # which does not fit the label adjacency, either
            Change("num_classes|label_adjacency", "zero", 0),
            Change("num_classes|label_adjacency", "negative", -1),
            Change("num_classes|label_adjacency", "fraction", C + 0.5),
            Change("label_adjacency", "another shape", torch.rand(C, C + 1, dtype=case.dtype)),
            Change("label_adjacency", "one-dimensional", torch.rand(C, dtype=case.dtype)),
            Change("label_adjacency", "negative", -among - 1),
            Change("label_adjacency", "NaN", among * torch.nan),
        ],
    )
    arguments = changed(change, adjacency=case.adjacency, num_classes=C, label_adjacency=among)
    layer, _ = make_layer(rng, "gcn", case)

    def run() -> None:
        graph = LabelGraph.without_labels(**arguments).show(case.shown, case.y)
        run_layer(layer, case.x, case.labels, graph, change)

    return Call("LabelGraph.without_labels", change, run)


def call_select(rng: random.Random) -> Call:
    case = draw_case(rng, least_nodes=4)
    train = case.shown if case.shown.numel() else torch.arange(3)
    mask = torch.zeros(case.nodes, dtype=torch.bool)
    mask[train] = True
    rates = {"negative": -1.0, "above one": 1.5, "NaN": float("nan")}
    change = draw_change(
        rng,
        [
            *(Change("rate", name, value) for name, value in rates.items()),
            Change("train_index", "a mask", mask, "either"),
            Change("train_index", "int32", train.int(), "either"),
            Change("train_index", "floating", train.float()),
            Change("train_index", "two-dimensional", train[None]),
        ],
    )
    arguments = changed(change, train_index=train, rate=rng.choice([0.25, 0.5, 1.0]))
    draw = torch.Generator().manual_seed(rng.getrandbits(32))

    def run() -> None:
        predicted, shown = select_training_nodes(arguments["train_index"], arguments["rate"], draw)
        if not may_succeed(change):
            return
        require_close(torch.cat([predicted, shown]).sort().values, train.sort().values)
        if predicted.numel() != int(arguments["rate"] * train.numel()):
            raise WrongResultError(f"{predicted.numel()} nodes predicted")

    return Call("select_training_nodes", change, run)


def call_sample(rng: random.Random) -> Call:
    case = draw_case(rng, least_nodes=2)
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    seeds = torch.randperm(case.nodes, generator=generator)[: rng.randint(1, case.nodes)]
    mask = torch.zeros(case.nodes, dtype=torch.bool)
    mask[seeds] = True
    changes = [*wrong_indices("seeds", seeds, case.nodes, unique=True), *wrong_fanouts("fanouts")]
    changes += [Change("seeds", "a mask", mask, "either"), Change("fanouts", "not a sequence", 5)]
    change = draw_change(rng, changes)
    arguments = changed(change, seeds=seeds, fanouts=rng.choice([(None, None), (10**6, None), (None, 10**6)]))
    # a mask gives the seeds in their order
    order = seeds.sort().values if change is not None and change.name == "a mask" else seeds
    model = make_model(rng, case)

    def run() -> None:
        graph = case.graph
        sample = sample_label_graph(graph, arguments["seeds"], arguments["fanouts"], (rng.getrandbits(32), 1))
        logits = model(model.prepare(case.x[sample.nodes]), sample)
        logits.square().sum().backward()
        if not may_succeed(change):
            return
        require_close(logits, model(model.prepare(case.x), graph.hide(order))[order], case.dtype)

    return Call("sample_label_graph", change, run)


def call_loader(rng: random.Random) -> Call:
    case = draw_case(rng, least_nodes=2)
    seeds = torch.randperm(case.nodes, generator=torch.Generator().manual_seed(rng.getrandbits(32)))[:3]
    changes = wrong_indices("seeds|input_nodes|node", seeds, case.nodes, unique=True)
    change = draw_change(rng, [*changes, *wrong_fanouts("fanouts?")])
    is_fanout = change is not None and change.argument.startswith("fanout")
    fanouts = change.value if change is not None and is_fanout else (None, None)
    nodes = seeds if change is None or is_fanout else change.value

    def run() -> None:
        graph = case.graph
        data = hetero_data(graph, case.x)
        sampled = LabelGraphSampler(graph, fanouts).sample_from_nodes(NodeSamplerInput(None, nodes))
        if not may_succeed(change):
            return
        ids = sampled.node[NODE]
        require_close(ids[: seeds.numel()], seeds)
        kind = (NODE, "to", NODE)
        edges = torch.stack([ids[sampled.row[kind]], ids[sampled.col[kind]]])
        require_close(edges, data[kind].edge_index[:, sampled.edge[kind]])
        # every edge that ends in a seed is in the batch
        ends = torch.isin(data[kind].edge_index[1], seeds).sum()
        require_close(torch.isin(edges[1], seeds).sum(), ends)

    return Call("LabelGraphSampler", change, run)


def call_hetero_data(rng: random.Random) -> Call:
    case = draw_case(rng, least_nodes=1)
    y = torch.zeros(case.nodes, dtype=torch.long)
    changes = [
        Change("x", "too many rows", torch.zeros(case.nodes + 1, 2)),
        Change("x", "too few rows", torch.zeros(case.nodes - 1, 2)),
        Change("y", "too many", torch.zeros(case.nodes + 1, dtype=torch.long)),
        Change("label_features", "too many rows", torch.zeros(case.classes + 1, 2)),
    ]
    change = draw_change(rng, changes)
    arguments = changed(change, x=case.x, y=y, label_features=case.labels)

    def run() -> None:
        data = hetero_data(case.graph, **arguments)
        if not may_succeed(change):
            return
        require_close(data[NODE].x, case.x)
        require_close(data[LABEL].x, case.labels)
        source, target = data[NODE, "to", NODE].edge_index
        require_close(torch.stack([target, source]).sort().values, case.edge_index.flip(0).sort().values)

    return Call("hetero_data", change, run)


LAYERS: dict[str, Any] = {"gcn": GCN, "sage": SAGE, "gat": GAT}


def make_layer(rng: random.Random, kind: str, case: Case) -> tuple[nn.Module, dict[str, Any]]:
    """A layer with labels, and its options."""
    options: dict[str, Any] = {"normalize": rng.choice(["relation", "joint"])}
    options |= {"heads": HEADS} if kind == "gat" else {}
    torch.manual_seed(rng.getrandbits(32))
    return LAYERS[kind](IN, OUT, **options).to(case.dtype), options


def run_layer(layer: Any, x: Tensor, labels: Tensor, graph: LabelGraph, change: Change | None) -> None:
    """Outputs and gradients have to be those of the dense computation in double precision."""
    dtype = layer.node.weight.dtype
    x, labels = (part.detach().requires_grad_(part.is_floating_point()) for part in (x, labels))
    nodes, new_labels = layer(x, labels, graph)
    (nodes.square().sum() + new_labels.square().sum()).backward()
    if not may_succeed(change):
        return
    exact = deepcopy(layer).double()
    exact.zero_grad()
    x_64, labels_64 = (part.detach().double().requires_grad_() for part in (x, labels))
    nodes_64, labels_out = dense_layer(exact, x_64, labels_64, graph)
    (nodes_64.square().sum() + labels_out.square().sum()).backward()
    require_close(nodes, nodes_64, dtype)
    require_close(new_labels, labels_out, dtype)
    for ours, reference in zip((x, labels, *layer.parameters()), (x_64, labels_64, *exact.parameters()), strict=True):
        zero = torch.zeros_like(reference)
        gradients = (zero if part.grad is None else part.grad for part in (ours, reference))
        require_close(*gradients, dtype)


def call_layer(kind: str, rng: random.Random) -> Call:
    case = draw_case(rng)
    layer, _ = make_layer(rng, kind, case)
    changes = [*wrong_matrices("x", case.x), *wrong_matrices("labels", case.labels)]
    changes += [Change("graph", "an edge_index", case.edge_index), Change("graph", "an adjacency", case.adjacency)]
    change = draw_change(rng, changes)
    arguments = changed(change, x=case.x, labels=case.labels, graph=case.graph)
    return Call(f"{LAYERS[kind].__name__} forward", change, lambda: run_layer(layer, **arguments, change=change))


def call_layer_options(kind: str, rng: random.Random) -> Call:
    case = draw_case(rng)
    _, options = make_layer(rng, kind, case)
    values: dict[str, list[Any]] = {
        "dropout": [1.0, 2.0, -0.5, float("nan")],
        "normalize": ["foo", "", 1],
    }
    values |= {"heads": [0, -1, 4]} if kind == "gat" else {}
    changes = [Change(name, str(value), value) for name, wrong in values.items() for value in wrong]
    change = draw_change(rng, changes)
    if change is not None:
        options[change.argument] = change.value

    def run() -> None:
        layer = LAYERS[kind](IN, OUT, **options).to(case.dtype)
        run_layer(layer, case.x, case.labels, case.graph, change)

    return Call(f"{LAYERS[kind].__name__}()", change, run)


def make_model(rng: random.Random, case: Case) -> LEGNN:
    """A model of two layers."""
    torch.manual_seed(rng.getrandbits(32))
    settings = ModelSettings(
        backbone=rng.choice(["gcn", "sage", "gat"]),
        labels=rng.choice(["vanilla", "concat", "addition", "enhanced"]),
        normalize=rng.choice(["relation", "joint"]),
        hidden=8,
        layers=2,
        attention=AttentionSettings(heads=HEADS),
    )
    return LEGNN(IN, case.classes, settings).to(case.dtype)


def call_model(rng: random.Random) -> Call:
    case = draw_case(rng)
    model = make_model(rng, case)
    more = draw_case(rng, least_nodes=4)
    changes = wrong_matrices("x", case.x)
    if more.nodes != case.nodes:
        changes.append(Change("x|graph", "a graph of another size", more.graph))
    if case.classes < 5:
        other = LabelGraph.without_labels(case.adjacency, case.classes + 1)
        all_shown = torch.arange(case.nodes)
        other = other.show(all_shown, torch.full_like(all_shown, case.classes))
        expects: Literal["error", "either"] = "error" if model.uses_labels else "either"
        changes.append(Change("graph|classes", "a graph with more classes", other, expects))
    changes.append(Change("graph", "an edge_index", case.edge_index))
    change = draw_change(rng, changes)
    graph = case.graph if change is None or change.argument == "x" else change.value
    x = change.value if change is not None and change.argument == "x" else case.x
    generator = torch.Generator().manual_seed(rng.getrandbits(32))

    def run() -> None:
        logits = model(model.prepare(x), graph)
        logits.square().sum().backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        if change is not None:
            return
        order = torch.randperm(case.nodes, generator=generator)
        renumbered = case.renumbered(order)
        model.zero_grad()
        again = model(model.prepare(renumbered.x), renumbered.graph)
        again.square().sum().backward()
        require_close(again, logits[order], case.dtype)
        for first, parameter in zip(gradients, model.parameters(), strict=True):
            if first is not None and parameter.grad is not None:
                require_close(parameter.grad, first, case.dtype)

    return Call("LEGNN forward", change, run)


TARGETS: list[Callable[[random.Random], Call]] = [
    call_from_edge_index,
    call_from_csr,
    call_show,
    call_hide,
    call_without_labels,
    call_select,
    call_sample,
    call_loader,
    call_hetero_data,
    *(partial(call_layer, kind) for kind in LAYERS),
    *(partial(call_layer_options, kind) for kind in LAYERS),
    call_model,
]


def make_call(seed: int) -> Call:
    """The call of a seed; the targets take turns."""
    return TARGETS[seed % len(TARGETS)](random.Random(seed))


def judge(call: Call) -> tuple[str, str] | None:
    """The kind of failure and its words; None if the outcome is right."""
    try:
        call.run()
    except InputError as error:
        if call.change is None:
            return "a valid call is refused", str(error)
        named = call.change.is_named_by(str(error))
        return None if named else ("the message does not name the argument", str(error))
    except WrongResultError as error:
        return "wrong result", str(error)
    except Exception as error:
        return f"{type(error).__name__}", str(error).split("\n")[0][:200]
    return None if may_succeed(call.change) else ("accepted", "")


# processes


def work(seeds: list[int], file: Path) -> None:
    """Makes calls in this process; writes the seed of each before it, and its outcome after it."""
    with file.open("w", buffering=1) as lines:
        for seed in seeds:
            lines.write(json.dumps({"begun": seed}) + "\n")
            call = make_call(seed)
            lines.write(json.dumps({"seed": seed, "call": str(call)}) + "\n")
            lines.write(json.dumps({"ended": seed, "failure": judge(call)}) + "\n")


def run_process(seeds: list[int], folder: Path) -> tuple[list[Failure], int]:
    """The failures of one process, and how many of the calls it began."""
    file = folder / "calls.jsonl"
    file.write_text("")
    command = [sys.executable, "-m", "benchmarks.fuzz", "--worker", str(file), *map(str, seeds)]
    try:
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_PER_PROCESS)
        code, error = ended.returncode, ended.stderr
    except subprocess.TimeoutExpired:
        code, error = 1, "no answer"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    calls = {line["seed"]: line["call"] for line in lines if "seed" in line}
    failures = [Failure(line["ended"], calls[line["ended"]], *line["failure"]) for line in lines if line.get("failure")]
    begun = [line["begun"] for line in lines if "begun" in line]
    ended_calls = {line["ended"] for line in lines if "ended" in line}
    if code and not begun:
        raise SystemExit(f"benchmarks.fuzz: a process did not start\n{error}")
    if code:
        seed = begun[-1]
        if seed in ended_calls:
            failures.append(
                Failure(seed, "the end of a process", "crash", f"exit code {code}, seeds {begun[0]} to {seed}")
            )
        else:
            failures.append(Failure(seed, calls.get(seed, "?"), "crash", f"exit code {code}"))
    return failures, len(begun)


def fuzz(first: int, calls: int) -> list[Failure]:
    """The failures of the calls with seeds from `first` on; a call that ends its process is made again alone."""
    seeds, failures = list(range(first, first + calls)), list[Failure]()
    with tempfile.TemporaryDirectory() as name:
        while seeds:
            of_process, begun = run_process(seeds[:CALLS_PER_PROCESS], Path(name))
            for failure in of_process:
                if failure.kind == "crash" and begun > 1:
                    alone, _ = run_process([failure.seed], Path(name))
                    note = "alone, too" if any(again.kind == "crash" for again in alone) else "not alone"
                    failure = failure._replace(detail=f"{failure.detail}; {note}")
                failures.append(failure)
            seeds = seeds[begun:]
    return failures


def report(failures: list[Failure]) -> list[str]:
    """A line for each kind of call and failure, with the first seeds."""
    by_kind: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        by_kind.setdefault((failure.call, failure.kind), []).append(failure)
    lines = []
    for (call, kind), group in sorted(by_kind.items()):
        seeds = ", ".join(str(failure.seed) for failure in group[:3])
        lines.append(f"{len(group):4d}  {call}: {kind} {group[0].detail!r} (seeds {seeds})")
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Make the calls and print the failures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first call")
    parser.add_argument("--only", type=int, help="make the call of this seed here")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.worker:
        work([int(seed) for seed in options.worker[1:]], Path(options.worker[0]))
        return
    if options.only is not None:
        call = make_call(options.only)
        print(call)
        call.run()
        return
    failures = fuzz(options.first, options.calls)
    print(*report(failures), f"{len(failures)} of {options.calls} calls failed", sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
