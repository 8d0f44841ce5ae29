"""Checks of a graph; an error names the place in one sentence and says what would have been right."""

import numpy as np
import torch
from torch import Tensor

from legnn.data.conversion import PARTS, shape_error
from legnn.data.raw_graph import RawGraph
from legnn.data.splits import TEST, TRAIN, VAL
from legnn.errors import InputError, plural, some_of
from legnn.lazy import pandas as pd

ROWS = 1 << 14
"""Rows of features that are checked together where each entry is marked."""


def validate(graph: RawGraph, split: Tensor, *, training: bool = True, validates: bool = True) -> None:
    """Raises `InputError` if a model could not be trained on `graph` and `split`, or its scores would mean nothing.

    If not `training`, only what prediction needs is checked; unless it `validates`, there may be no validation nodes.
    """
    check_nodes(graph)
    if graph.x.shape[1] == 0:
        raise InputError(f"x of {graph.name} has no columns; every node needs at least one feature")
    check_finite(graph.x, graph.name, graph.node_id, graph.feature_names)
    check_edges(graph)
    if training:
        _check_labels(graph)
        _check_split(graph, split, validates)
        _check_label_graph(graph)


def check_nodes(graph: RawGraph) -> None:
    """Raises `InputError` if the fields of nodes are not of one length, or two nodes have the same id."""
    if graph.x.dim() != 2:
        raise shape_error("x", graph.x, graph.name, "be [M, F], a row for each node")
    nodes = graph.x.shape[0]
    if nodes == 0:
        raise InputError(f"{graph.name} has no nodes; there must be at least one of each class")
    for field, values in (("y", graph.y), ("node_id", graph.node_id)):
        if len(values) != nodes:
            raise InputError(f"{graph.name} has {plural(nodes, 'row')} in x and {len(values):,} in {field}")
    if graph.node_types is not None and bool((graph.y[~graph.node_types.target_mask] >= 0).any()):
        raise InputError(f"{graph.name} has labels of other types than {graph.node_types.target!r}; take them out")
    ids = graph.node_id
    # numbers that ascend, as rows that are numbered do: no two of them are the same
    if ids.dtype.kind in "iu" and bool((ids[1:] > ids[:-1]).all()):
        return
    keys = pd.DataFrame({"id": ids})
    if graph.node_types is not None:
        keys["type"] = graph.node_types.node_type.numpy()  # nodes of different types may have the same id
    duplicated = keys.duplicated(keep=False).to_numpy()
    if duplicated.any():
        first = int(np.argmax(duplicated))
        rows = np.flatnonzero((keys == keys.iloc[first]).all(axis=1))[:2]
        raise InputError(
            f"node id {_id(graph.node_id, first)} of {graph.name} is in rows {rows[0]} and {rows[1]}; ids must differ"
        )


def check_finite(x: Tensor, name: str, ids: np.ndarray, columns: list[str] | None) -> None:
    """Raises `InputError` if features `x` [n, F] are not finite, naming the node and column of the first."""
    # a sum is finite if all its terms are: one cheap pass for the usual case; an overflow only costs a second pass
    if torch.isfinite(x.sum()):
        return
    count, first = 0, 0
    for begin in range(0, len(x), ROWS):
        bad = ~torch.isfinite(x[begin : begin + ROWS])
        if count == 0 and bad.any():
            first = begin * x.shape[1] + _first(bad.flatten())
        count += int(bad.sum())
    if count == 0:
        return
    node, column = divmod(first, x.shape[1])
    column_name = repr(columns[column]) if columns else str(column)
    raise InputError(
        f"{plural(count, 'feature')} of {name} {'is' if count == 1 else 'are'} missing, not a number or infinite, "
        f"the first at node {_id(ids, node)}, column {column_name}; every feature must be a finite number"
    )


def check_edges(graph: RawGraph) -> None:
    """Raises `InputError` if there is no edge, or an end or a weight cannot be one."""
    edge_index, nodes = graph.edge_index, graph.x.shape[0]
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise shape_error("edge_index", edge_index, graph.name, "be [2, E]")
    if edge_index.shape[1] == 0:
        raise InputError(f"{graph.name} has no edges; a graph needs at least one")
    # the extremes decide: a mask over all edges is built only where one of them has to be named
    if int(edge_index.min()) < 0 or int(edge_index.max()) >= nodes:
        outside = ((edge_index < 0) | (edge_index >= nodes)).any(dim=0)
        edge = _first(outside)
        source, target = edge_index[:, edge].tolist()
        raise InputError(
            f"{plural(int(outside.sum()), 'edge')} of {graph.name} name a node that does not exist, the first is edge "
            f"{edge} ({source} to {target}); nodes go from 0 to {nodes - 1}"
        )
    weight = graph.edge_weight
    if weight is not None and list(weight.shape) != [edge_index.shape[1]]:
        raise shape_error("edge_weight", weight, graph.name, f"be [{edge_index.shape[1]}]")
    # with a NaN among the weights both extremes are NaN, which compares false
    if weight is not None and not (float(weight.min()) > 0 and float(weight.max()) < float("inf")):
        edge = _first(~(torch.isfinite(weight) & (weight > 0)))
        raise InputError(
            f"the weight of edge {edge} of {graph.name} is {float(weight[edge])}; a weight must be finite and above 0"
        )


def _check_labels(graph: RawGraph) -> None:
    y, classes = graph.y, len(graph.class_names)
    outside = (y < -1) | (y >= classes)
    if outside.any():
        node = _first(outside)
        raise InputError(
            f"node {_id(graph.node_id, node)} of {graph.name} has the class {int(y[node])}; "
            f"classes go from 0 to {classes - 1}, and -1 is unlabeled"
        )
    present = torch.unique(y[y >= 0])
    if len(present) == 0:
        raise InputError(f"no node of {graph.name} has a label; at least two classes must be labeled")
    if len(present) == 1:
        raise InputError(
            f"every label of {graph.name} is {graph.class_names[int(present[0])]!r}; there must be two classes or more"
        )


def _check_split(graph: RawGraph, split: Tensor, validates: bool) -> None:
    for value in (TRAIN, VAL, TEST):
        unlabeled = (split == value) & (graph.y < 0)
        if unlabeled.any():
            raise InputError(
                f"{plural(int(unlabeled.sum()), f'{PARTS[value]} node')} of {graph.name} without a label, the first is "
                f"{_id(graph.node_id, _first(unlabeled))}; label it, or leave it out of the split"
            )
    if not (split == TRAIN).any():
        raise InputError(f"no node of {graph.name} is for training; mark some labeled nodes 'train'")
    if validates and not (split == VAL).any():
        raise _no_validation(graph)
    classes = len(graph.class_names)
    trained = torch.bincount(graph.y[split == TRAIN], minlength=classes)
    for value in (VAL, TEST):
        untrained = (torch.bincount(graph.y[split == value], minlength=classes) > 0) & (trained == 0)
        if untrained.any():
            names = some_of([repr(graph.class_names[c]) for c in untrained.nonzero().flatten().tolist()])
            raise InputError(
                f"{graph.name} has {PARTS[value]} nodes but no training node of class {names}; "
                f"mark at least one of each class 'train'"
            )


def _no_validation(graph: RawGraph) -> InputError:
    without = "`data.validation=none` trains without, for a fixed number of epochs"
    if graph.split is not None:
        return InputError(
            f"no node of {graph.name} is for validation; mark some 'val', or drop the split column and one is drawn; "
            f"{without}"
        )
    return InputError(
        f"no split of {graph.name} can be drawn: each of its {len(graph.class_names):,} classes has one labeled "
        f"node, which is for training, and none is left for validation; label a second one of some class; {without}"
    )


def _check_label_graph(graph: RawGraph) -> None:
    """Checks the features of labels `[C, F']` and the weights of label–label edges `[C, C]`."""
    classes = len(graph.class_names)
    label_x, among = graph.label_x, graph.label_adjacency
    if label_x is not None and (label_x.dim() != 2 or label_x.shape[0] != classes or label_x.shape[1] == 0):
        raise shape_error("label_x", label_x, graph.name, f"have a row for each of the {classes} classes")
    if label_x is not None and not torch.isfinite(label_x).all():
        raise InputError(f"label_x of {graph.name} holds numbers that are not finite; every label feature must be")
    if among is not None and list(among.shape) != [classes, classes]:
        raise shape_error("label_adjacency", among, graph.name, f"be [{classes}, {classes}]")
    if among is not None and not (torch.isfinite(among).all() and (among >= 0).all()):
        raise InputError(f"label_adjacency of {graph.name} must hold weights that are finite and not negative")


def _first(mask: Tensor) -> int:
    return int(mask.to(torch.uint8).argmax())


def _id(node_id: np.ndarray, node: int) -> str:
    return repr(node_id[node : node + 1].tolist()[0])
