"""What a prediction costs."""

from __future__ import annotations

import statistics
import time

import torch

from legnn.runs import Run

REPEATS = 5


def inference_seconds(run: Run, device: str = "auto") -> float:
    """Returns the seconds of one prediction of all nodes with all training labels shown, on `device`.

    The median of five after one to warm up. The graph and the features are on the device; what is timed is the label
    graph with these labels and the forward pass, without post-processing.
    """
    with run.inference(run.own_graph(), device=device) as (layer_wise, inference):
        # LayerWise keeps what it prepares for these very tensors
        shown, nodes = inference.shown, inference.nodes

        def seconds() -> float:
            _synchronize(layer_wise.device)
            start = time.perf_counter()
            layer_wise.logits(shown, nodes)
            _synchronize(layer_wise.device)
            return time.perf_counter() - start

        seconds()
        return statistics.median(seconds() for _ in range(REPEATS))


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
