"""Digests of what a user gets: two are equal only if everything in it is, bit for bit."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from legnn.data import GraphData
from legnn.runs import Predictor, Result, RunFolder

CLOCKS = ("seconds", "versions")
"""Keys that differ between two runs that are the same."""


class Nonsense(Exception):  # noqa: N818 (a verdict, not an error of a program)
    """A result that nobody asked for, whatever the input: probabilities that are none."""


def digest(*parts: Any) -> str:
    """Returns a digest of values of any types."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(f"{type(part).__name__} {_plain(part)!r}".encode(errors="surrogatepass"))
    return found.hexdigest()


def graph_digest(graph: GraphData) -> str:
    """Returns the digest of all that a run reads of a graph; kept fingerprints are not believed."""
    types, adjacency = graph.node_types, graph.adjacency
    tensors = [graph.x, graph.y, adjacency.rowptr, adjacency.col, adjacency.weight, graph.label_x]
    masks = [graph.train_mask, graph.val_mask, graph.test_mask]
    typed = [] if types is None else [types.names, types.target, types.columns, types.node_type]
    return digest(
        *tensors, graph.label_adjacency, *masks, graph.node_id, graph.class_names, graph.feature_names, *typed
    )


def run_digest(run: Predictor) -> str:
    """Returns the digest of a run as it is opened: weights, predictions, scores, settings and log."""
    parts: list[Any] = []
    for one in run.members:
        parts += [*(value for item in one.model.state_dict().items() for value in item)]
        parts += [frame_digest(one.predictions), result_digest(one.result), one.settings, one.card]
        if one.folder is not None:
            parts.append([without_clocks(log) for log in RunFolder(one.folder).logs()])
    if run.kind != "run":
        parts += [run.weights, run.temperature, frame_digest(run.predictions), result_digest(run.result)]
    return digest(*parts)


def result_digest(result: Result) -> str:
    """Returns the digest of scores, without the time they took."""
    return digest(without_clocks(asdict(result)))


def frame_digest(frame: pd.DataFrame) -> str:
    """Returns the digest of predictions; raises `Nonsense` for confidences or probabilities that are none."""
    for name in frame.columns:
        column = frame[name]
        is_probability = name == "confidence" or frame.index.name == "id"
        if is_probability and not ((column >= 0) & (column <= 1 + 1e-5)).all():
            raise Nonsense(f"the column {name!r} of predictions has {column.min()} to {column.max()}")
    return digest(*(value for name in frame.columns for value in (name, frame[name].to_numpy())), frame.index.tolist())


def without_clocks(values: dict[str, Any]) -> dict[str, Any]:
    """Returns a mapping without what differs between two runs that are the same."""
    return {name: value for name, value in values.items() if name not in CLOCKS}


def _plain(part: Any) -> Any:
    if isinstance(part, Tensor):
        part = part.cpu().numpy()
    if isinstance(part, np.ndarray):
        return part.tolist() if part.dtype == object else (part.dtype.str, part.shape, part.tobytes())
    return part
