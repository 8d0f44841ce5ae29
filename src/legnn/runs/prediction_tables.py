"""Predictions as tables: class and confidence, the next classes, the probability of every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from legnn.data import GraphData
from legnn.data.splits import SPLIT_NAMES
from legnn.io import CategoricalColumn, PredictionTable
from legnn.lazy import pandas as pd
from legnn.training.inference import class_and_confidence


def predictions_table(graph: GraphData, predicted: Tensor) -> PredictionTable:
    """Returns id, prediction, confidence, split of nodes of the labeled type, from class and confidence `[M, 2]`."""
    rows = target_rows(graph)
    columns = {
        "id": graph.node_id[rows],
        "prediction": CategoricalColumn(graph.class_names, predicted[:, 0].long().numpy()[rows]),
        "confidence": predicted[:, 1].float().numpy()[rows],
        "split": CategoricalColumn(SPLIT_NAMES, graph.split.long().numpy()[rows]),
    }
    return PredictionTable(columns, tuple(map(str, graph.notes)))


def top_table(graph: GraphData, highest: Tensor) -> pd.DataFrame:
    """Returns the table of predictions with `label`, the true class, and `prediction_2`, `confidence_2` and so on.

    `highest` is `[M, k, 2]`: the `k` most probable classes and their probabilities.
    """
    rows, names = target_rows(graph), _class_names(graph)
    columns: dict[str, Any] = {"label": _labels(graph)}
    for k in range(1, highest.size(1)):
        columns[f"prediction_{k + 1}"] = names[highest[:, k, 0].long().numpy()[rows]].tolist()
        columns[f"confidence_{k + 1}"] = highest[:, k, 1].float().numpy()[rows]
    return pd.concat([predictions_table(graph, highest[:, 0]).frame, pd.DataFrame(columns)], axis=1)


def probability_columns(graph: GraphData, p: Tensor) -> pd.DataFrame:
    """Returns the table of predictions with `label`, the true class, and `p_CLASS` of `p` `[M, C]` for every class."""
    frame = probabilities_table(graph, p).add_prefix("p_").reset_index(drop=True)
    frame.insert(0, "label", _labels(graph))
    return pd.concat([predictions_table(graph, class_and_confidence(p)).frame, frame], axis=1)


def probabilities_table(graph: GraphData, p: Tensor) -> pd.DataFrame:
    """Returns the probabilities `[M, C]` of nodes of the labeled type by node id, a column for each class."""
    rows = target_rows(graph)
    index = pd.Index(graph.node_id[rows], name="id")
    return pd.DataFrame(p[rows].float().numpy(), index=index, columns=graph.class_names)


def target_rows(graph: GraphData) -> Any:
    """The nodes of the labeled type, as an index of arrays."""
    return slice(None) if graph.node_types is None else graph.node_types.target_mask.numpy()


def _labels(graph: GraphData) -> pd.Series:
    return pd.Series(_class_names(graph)[graph.y.numpy()[target_rows(graph)]], dtype=object)


def _class_names(graph: GraphData) -> np.ndarray:
    """`[C + 1]` the names of the classes, and None for -1."""
    names = np.empty(graph.num_classes + 1, dtype=object)
    names[:-1], names[-1] = graph.class_names, None
    return names
