"""What the runs of a group predict in the end: captured once, with the weights of each in turn."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.nn import Model
from legnn.training.cuda_graph import CudaGraphs, Replay
from legnn.training.in_flight import ToHost
from legnn.training.inference import Folds, predict_in_folds, to_class_and_confidence
from legnn.training.sharing import run_stream
from legnn.training.task import Task


class GroupPredictions:
    """Predicts every node without its own label, in a dozen forward passes that are one launch.

    Launched one by one they take longer than a hundred epochs of a small run.

    Args:
        model: of one of the runs.
        inputs: of the model.
        task: of all runs.
        shown: the nodes that show their labels.
        folds: of these.
    """

    def __init__(self, model: Model, inputs: object, task: Task, shown: Tensor, folds: Folds) -> None:
        self._model, self._inputs, self._task = deepcopy(model).eval(), inputs, task
        self._shown, self._folds = shown, folds
        self._graphs = [task.show(nodes) for nodes in (shown, *(others for _, others in folds))]
        # not the stream of one of the runs: the workspace of its products is part of what was captured on it, and this
        # run would launch epochs while another predicts
        self._stream = run_stream(task.y.device)
        self._stream.wait_stream(torch.cuda.current_stream(task.y.device))
        with torch.cuda.stream(self._stream):
            # one pass before the capture: everything is created that is created once
            rows = self._rows(self._graphs[0], shown[:1])
            out = torch.empty(task.y.numel(), *rows.shape[1:], dtype=rows.dtype, device=rows.device)
            self._replay = Replay(CudaGraphs(task.y.device), out)

    def predict(self, model: Model) -> ToHost:
        """`[M, 2]` class and confidence by the weights of `model`, which has ended its training."""
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            self._model.load_state_dict(model.state_dict())
            # on this stream: the next run's overwrite them
            found = ToHost(self._replay.run(self._predict))
        current.wait_stream(self._stream)
        return found

    def _predict(self) -> Tensor:
        graphs = iter(self._graphs)
        task = self._task
        return predict_in_folds(
            lambda shown, nodes: self._rows(next(graphs), nodes), self._shown, self._folds, task.y.numel(), task.targets
        )

    @torch.no_grad()
    def _rows(self, graph: LabelGraph, nodes: Tensor) -> Tensor:
        """`[n, 2]` class and confidence of `nodes` `[n]`."""
        return to_class_and_confidence(self._model(self._inputs, graph).index_select(0, nodes))
