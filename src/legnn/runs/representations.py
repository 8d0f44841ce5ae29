"""Representations of each node and each label before the classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from legnn.training import Inference, LayerWise, split_by_fold


class NodeRepresentations(NamedTuple):
    """`Z_N` of every node of the labeled type, in the order of the graph, as arrays on the host."""

    nodes: np.ndarray
    """`[n, D]` with the labels of all training nodes shown, as the paper does at inference."""
    nodes_without_own_label: np.ndarray
    """`[n, D]` where no row depends on the node's own label: those of a training node's fold are hidden."""
    labels: np.ndarray | None
    """`[C, D]` the labels as the last layer reads them; None where labels are not nodes."""
    y: np.ndarray
    """`[n]` int64, -1 where the class is unknown."""
    split: np.ndarray
    """`[n]` `"train"`, `"val"`, `"test"`, or empty for a node in no split."""
    node_id: np.ndarray
    """`[n]`."""


def compute_representations(layer_wise: LayerWise, inference: Inference) -> dict[str, Any]:
    """Returns `nodes`, `nodes_without_own_label` and `labels` for all nodes that `inference` predicts."""
    every, shown = inference.nodes, inference.shown
    with_own, labels = layer_wise.representations(shown, every)
    nodes = with_own.cpu().numpy()
    without = nodes
    if shown.numel():
        without = nodes.copy()
        # from a node to its row: nodes that are not of the labeled type have none
        row_of = torch.full((inference.fold.numel(),), -1, device=every.device)
        row_of[every] = torch.arange(every.numel(), device=every.device)
        for masked, others in split_by_fold(shown, inference.fold):
            rows = layer_wise.representations(others, masked).nodes
            without[row_of[masked].cpu().numpy()] = rows.cpu().numpy()
    of_labels = None if labels is None else labels.cpu().numpy()
    return {"nodes": nodes, "nodes_without_own_label": without, "labels": of_labels}
