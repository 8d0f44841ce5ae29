"""Columns that predictions may have beside the class and its confidence: the true label, and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from legnn.data import GraphData
from legnn.errors import InputError


def check_columns(top: int | None, probabilities: bool) -> bool:
    """Whether any of these columns is asked for; raises `InputError` for what cannot be."""
    if top is not None and probabilities:
        raise InputError("`top` adds the most probable classes and `probabilities` all of them; give one of the two")
    if top is not None and top < 1:
        raise InputError(f"top must be at least 1, got {top}")
    return top is not None or probabilities


def class_columns(graph: GraphData, p: Tensor, rows: Any, *, top: int | None = None) -> pd.DataFrame:
    """Returns `label`, the true class where it is known, and columns of the probabilities `p` `[M, C]`, of `rows`.

    These are `p_CLASS` for every class, or with `top` `prediction_2`, `confidence_2` and so on: the classes that come
    after the most probable one, as many as make `top` with it.
    """
    names = np.empty(graph.num_classes + 1, dtype=object)
    names[:-1], names[-1] = graph.class_names, None
    columns: dict[str, Any] = {"label": pd.Series(names[graph.y.numpy()[rows]], dtype=object)}
    p = p[rows].float()
    if top is None:
        columns |= {f"p_{name}": p[:, c].numpy() for c, name in enumerate(graph.class_names)}
    else:
        found = p.topk(min(top, graph.num_classes), dim=1)
        for k in range(1, found.indices.size(1)):
            columns[f"prediction_{k + 1}"] = names[found.indices[:, k].numpy()].tolist()
            columns[f"confidence_{k + 1}"] = found.values[:, k].numpy()
    return pd.DataFrame(columns)
