"""What the tests of mini-batches and of several processes share."""

from __future__ import annotations

from typing import NamedTuple

import torch
from tests.graphs import small_data
from tests.named import model_settings
from torch_geometric.data import HeteroData

from legnn.datasets import load
from legnn.graph import SamplingOptions
from legnn.nn import LEGNN, Model
from legnn.training import ASTrain, FullBatch, MiniBatch, Objective, Task
from legnn.training.batches import Batch

CPU = torch.device("cpu")
CLASSES = 3


class NoStep(torch.optim.SGD):
    """An optimizer that keeps every gradient it is given and changes nothing."""

    def __init__(self, model: LEGNN) -> None:
        super().__init__(model.parameters(), lr=0.0)
        self.model = model
        self.seen: list[dict[str, torch.Tensor]] = []

    def step(self) -> None:
        self.seen.append({name: p.grad.clone() for name, p in self.model.named_parameters() if p.grad is not None})


def make(
    labels: str = "enhanced",
    nodes: int = 40,
    graph: HeteroData | None = None,
    **options,
) -> tuple[LEGNN, Task]:
    data = load(small_data(nodes) if graph is None else graph)
    torch.manual_seed(0)
    given = {"hidden": 8, "layers": 2, "norm": "layer", "residual": "linear", "label_at_input": True, "heads": 2}
    settings = model_settings(labels=labels, **{**given, **options})
    model = LEGNN(data.x.size(1), CLASSES, settings, num_types=data.num_types)
    model.fit_scaler(data.x, data.node_type)
    return model, Task.from_graph(data, CPU)


def full_batch(model: LEGNN, task: Task, optimizer=None, rule: ASTrain | None = None) -> FullBatch:
    generator = torch.Generator().manual_seed(1)
    return FullBatch(model, task, objective(model, rule=rule), optimizer or NoStep(model), generator)


def mini_batch(
    model: LEGNN, task: Task, batch: int, fanouts, optimizer=None, rule: ASTrain | None = None, **options
) -> MiniBatch:
    generator = torch.Generator().manual_seed(1)
    chosen = objective(model, rule=rule)
    return MiniBatch(
        model,
        task,
        chosen,
        optimizer or NoStep(model),
        generator,
        batch=batch,
        sampling=SamplingOptions(fanouts),
        **options,
    )


class WatchedStep(NamedTuple):
    """What one step computed."""

    predicted: torch.Tensor
    """Nodes, and likewise the candidates."""
    candidates: torch.Tensor
    logits: torch.Tensor
    """Of both, in this order."""


def watch_steps(parts: MiniBatch) -> list[WatchedStep]:
    """A list that every later step of `parts` is added to."""
    seen: list[WatchedStep] = []
    forward = parts._forward

    def watched(batch: Batch) -> torch.Tensor:
        logits = forward(batch)
        predicted = batch.graph.nodes[: batch.num_local]
        seen.append(WatchedStep(predicted, batch.candidates, logits.detach().clone()))
        return logits

    parts._forward = watched  # type: ignore[method-assign]
    return seen


def objective(model: Model, **options) -> Objective:
    return Objective(**{"alpha": 0.5, "uses_labels": model.uses_labels, **options})
