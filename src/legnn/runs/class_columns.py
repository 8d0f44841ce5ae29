"""Columns that predictions may have beside the class and its confidence: the true label, and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from legnn.data import GraphData
from legnn.errors import InputError
from legnn.lazy import pandas as pd


def check_columns(top: int | None, probabilities: bool) -> bool:
    """Whether any of these columns is asked for; raises `InputError` for what cannot be."""
    if top is not None and probabilities:
        raise InputError("`top` adds the most probable classes and `probabilities` all of them; give one of the two")
    if top is not None and top < 1:
        raise InputError(f"top must be at least 1, got {top}")
    return top is not None or probabilities


def class_columns(graph: GraphData, p: Tensor, rows: Any) -> pd.DataFrame:
    """Returns `label`, the true class where it is known, and `p_CLASS` of `p` `[M, C]` for every class, of `rows`."""
    p = p[rows].float()
    columns = {f"p_{name}": p[:, c].numpy() for c, name in enumerate(graph.class_names)}
    return pd.DataFrame({"label": _labels(graph, rows), **columns})


def top_columns(graph: GraphData, found: Tensor, rows: Any) -> pd.DataFrame:
    """Returns `label` and `prediction_2`, `confidence_2` and so on, of `rows`: the classes after the most probable one.

    `found` is `[M, k, 2]`, the `k` most probable classes and their probabilities.
    """
    names, found = _names(graph), found[rows]
    columns: dict[str, Any] = {"label": _labels(graph, rows)}
    for k in range(1, found.size(1)):
        columns[f"prediction_{k + 1}"] = names[found[:, k, 0].long().numpy()].tolist()
        columns[f"confidence_{k + 1}"] = found[:, k, 1].float().numpy()
    return pd.DataFrame(columns)


def _labels(graph: GraphData, rows: Any) -> pd.Series:
    return pd.Series(_names(graph)[graph.y.numpy()[rows]], dtype=object)


def _names(graph: GraphData) -> np.ndarray:
    """`[C + 1]` the names of the classes, and None for -1."""
    names = np.empty(graph.num_classes + 1, dtype=object)
    names[:-1], names[-1] = graph.class_names, None
    return names
