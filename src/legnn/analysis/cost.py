"""Cost of a prediction, and of an epoch of training."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from legnn.data import GraphData
from legnn.runs import Run, RunFolder
from legnn.runs.build import new_trainer
from legnn.runs.device import hardware, select_device
from legnn.training.ranks import SINGLE_PROCESS

REPEATS = 5
WARM_UP = 6
"""Epochs of training before one is timed."""


def inference_seconds(run: Run, device: str = "auto") -> float:
    """Returns the seconds of one prediction of all nodes with all training labels shown, on `device`.

    The median of five after one to warm up. The graph and the features are on the device; what is timed is the label
    graph with these labels and the forward pass, without post-processing.
    """
    with run.inference(run.own_graph(), device=device) as (layer_wise, inference):
        # LayerWise keeps what it prepares for these very tensors
        shown, nodes = inference.shown, inference.nodes

        return _median_seconds(lambda: layer_wise.logits(shown, nodes), layer_wise.device, warm_up=1)


class TrainingCost(NamedTuple):
    """Cost of training on a device."""

    seconds: float
    """Of an epoch, without validation."""
    peak_bytes: int | None
    """The most memory that was allocated on the GPU, with graph, features and weights; None on a CPU."""


def training_cost(run: RunFolder, graph: GraphData, device: str = "auto") -> TrainingCost:
    """Returns what an epoch of a run's training on its `graph` costs, measured with new weights on `device`.

    The median of five epochs after six to warm up: on a GPU the step of a full batch is captured after three. Epochs
    are numbered as the last of the run, for self-training may have nothing to choose from in the first.
    """
    # what an earlier measurement left is not part of this one
    gc.collect()
    where = select_device(device)
    with new_trainer(run.settings, graph, run.card, where, SINGLE_PROCESS) as trainer:
        trainer.epoch = max(run.result().epochs - WARM_UP - REPEATS, 0)
        # before the first step: a captured step takes memory without the allocator counting it again
        hardware(where).reset_peak_bytes()
        seconds = _median_seconds(trainer.train_epoch, where, warm_up=WARM_UP)
        peak = hardware(where).peak_bytes()
        trainer.batching.reset()
    return TrainingCost(seconds, peak)


def _median_seconds(work: Callable[[], object], device: torch.device, *, warm_up: int) -> float:
    """The median time of five calls of `work`, after some that are not timed."""

    def seconds() -> float:
        hardware(device).synchronize()
        start = time.perf_counter()
        work()
        hardware(device).synchronize()
        return time.perf_counter() - start

    for _ in range(warm_up):
        work()
    return statistics.median(seconds() for _ in range(REPEATS))
