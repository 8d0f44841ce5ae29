"""Where bad input is named: one sentence that says where it is and what would have been right."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from legnn.errors import InputError, plural

PARTS = {"train_mask": "training", "val_mask": "validation", "test_mask": "test"}

ROWS = 1 << 14
"""Rows of features that are looked at together where each is marked."""


def validate(data: Data, *, training: bool = True) -> None:
    """Raise `InputError` if a model could not be trained on `data`, or its figures would mean nothing.

    Args:
        data: in the form `load` returns, but for the preparation of its edges.
        training: whether it is to be trained on; otherwise only what predicting needs is checked.
    """
    _check_nodes(data)
    _check_features(data)
    _check_edges(data)
    if training:
        _check_labels(data)
        _check_split(data)
        _check_label_knowledge(data)


def _check_nodes(data: Data) -> None:
    if data.x.dim() != 2:
        raise InputError(f"x of {data.name} has the shape {list(data.x.shape)}; it must be [M, F], a row for each node")
    nodes = data.x.shape[0]
    if nodes == 0:
        raise InputError(f"{data.name} has no nodes; there must be at least one of each class")
    for field in ("y", "node_id"):
        if len(data[field]) != nodes:
            raise InputError(f"{data.name} has {plural(nodes, 'row')} in x and {len(data[field]):,} in {field}")
    _check_types(data)
    known_by = pd.DataFrame({"id": data.node_id})
    if data.get("node_type") is not None:
        known_by["type"] = data.node_type.numpy()  # nodes of different types may have the same id
    twice = known_by.duplicated(keep=False).to_numpy()
    if twice.any():
        first = int(np.argmax(twice))
        rows = np.flatnonzero((known_by == known_by.iloc[first]).all(axis=1))[:2]
        raise InputError(
            f"node id {_id(data, first)} of {data.name} is in rows {rows[0]} and {rows[1]}; ids must differ"
        )


def _check_types(data: Data) -> None:
    """Fields of a graph of several node types; `heterogeneous` makes them right, a user's hand may not."""
    if data.get("node_type") is None:
        return
    nodes, types = data.x.shape[0], len(data.type_names)
    kind = data.node_type
    if list(kind.shape) != [nodes] or kind.dtype != torch.int64 or bool(((kind < 0) | (kind >= types)).any()):
        raise InputError(
            f"node_type of {data.name} must be an int64 from 0 to {types - 1} for each of the {plural(nodes, 'node')}"
        )
    if list(data.target_mask.shape) != [nodes] or data.target_mask.dtype != torch.bool:
        raise InputError(f"target_mask of {data.name} must be a bool for each of the {plural(nodes, 'node')}")
    if bool((data.y[~data.target_mask] >= 0).any()):
        raise InputError(f"{data.name} has labels outside of target_mask; only nodes of the labeled type have any")


def _check_features(data: Data) -> None:
    if data.x.shape[1] == 0:
        raise InputError(f"x of {data.name} has no columns; every node needs at least one feature")
    check_finite(data.x, data.name, lambda node: _id(data, node), data.get("feature_names"))


def check_finite(x: Tensor, name: str, node_name: Callable[[int], str], columns: list[str] | None) -> None:
    """Refuse features `x` [n, F] of `name` that are not finite, naming the first by its node and column."""
    # a sum is finite if all its terms are: one cheap pass for the usual case, an overflow only costs the careful look
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
        f"the first at node {node_name(node)}, column {column_name}; every feature must be a finite number"
    )


def _check_edges(data: Data) -> None:
    edge_index, nodes = data.edge_index, data.x.shape[0]
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise InputError(f"edge_index of {data.name} has the shape {list(edge_index.shape)}; it must be [2, E]")
    if edge_index.shape[1] == 0:
        raise InputError(f"{data.name} has no edges; a graph needs at least one")
    # the least and the largest tell: a mark for each edge is made only where there is one to be named
    if int(edge_index.min()) < 0 or int(edge_index.max()) >= nodes:
        outside = ((edge_index < 0) | (edge_index >= nodes)).any(dim=0)
        edge = _first(outside)
        source, target = edge_index[:, edge].tolist()
        raise InputError(
            f"{plural(int(outside.sum()), 'edge')} of {data.name} name a node that does not exist, the first is edge "
            f"{edge} ({source} to {target}); nodes go from 0 to {nodes - 1}"
        )
    if data.get("edge_weight") is not None:
        _check_weights(data)


def _check_weights(data: Data) -> None:
    weight, edges = data.edge_weight, data.edge_index.shape[1]
    if list(weight.shape) != [edges]:
        raise InputError(f"edge_weight of {data.name} has the shape {list(weight.shape)}; it must be [{edges}]")
    # NaN is the least and the largest of everything, and neither above 0 nor below infinity
    if not (float(weight.min()) > 0 and float(weight.max()) < float("inf")):
        edge = _first(~(torch.isfinite(weight) & (weight > 0)))
        raise InputError(
            f"the weight of edge {edge} of {data.name} is {float(weight[edge])}; a weight must be finite and above 0"
        )


def _check_labels(data: Data) -> None:
    y, classes = data.y, len(data.class_names)
    outside = (y < -1) | (y >= classes)
    if outside.any():
        node = _first(outside)
        raise InputError(
            f"node {_id(data, node)} of {data.name} has the class {int(y[node])}; "
            f"classes go from 0 to {classes - 1}, and -1 is unlabeled"
        )
    present = torch.unique(y[y >= 0])
    if len(present) == 0:
        raise InputError(f"no node of {data.name} has a label; at least two classes must be labeled")
    if len(present) == 1:
        raise InputError(
            f"every label of {data.name} is {data.class_names[int(present[0])]!r}; there must be two classes or more"
        )


def _check_split(data: Data) -> None:
    nodes = data.x.shape[0]
    for mask, part in PARTS.items():
        if data[mask].dtype != torch.bool or list(data[mask].shape) != [nodes]:
            raise InputError(f"{mask} of {data.name} must be a bool for each of the {plural(nodes, 'node')}")
        unlabeled = data[mask] & (data.y < 0)
        if unlabeled.any():
            raise InputError(
                f"{plural(int(unlabeled.sum()), f'{part} node')} of {data.name} without a label, the first is "
                f"{_id(data, _first(unlabeled))}; label it, or leave it out of the split"
            )
    shared = data.train_mask.int() + data.val_mask.int() + data.test_mask.int() > 1
    if shared.any():
        node = _first(shared)
        parts = [part for mask, part in PARTS.items() if data[mask][node]]
        raise InputError(
            f"node {_id(data, node)} of {data.name} is in both the {' and the '.join(parts)} set; choose one"
        )
    if not data.train_mask.any():
        raise InputError(f"no node of {data.name} is for training; mark some labeled nodes 'train'")
    if not data.val_mask.any():
        raise InputError(
            f"no node of {data.name} is for validation; mark some 'val', or drop the split column and one is drawn"
        )
    _check_every_class_is_trained(data)


def _check_every_class_is_trained(data: Data) -> None:
    classes = len(data.class_names)
    trained = torch.bincount(data.y[data.train_mask], minlength=classes) > 0
    for mask in ("val_mask", "test_mask"):
        untrained = (torch.bincount(data.y[data[mask]], minlength=classes) > 0) & ~trained
        if untrained.any():
            names = ", ".join(repr(data.class_names[c]) for c in untrained.nonzero().flatten()[:5].tolist())
            more = "" if int(untrained.sum()) <= 5 else f" and {int(untrained.sum()) - 5} more"
            raise InputError(
                f"{data.name} has {PARTS[mask]} nodes but no training node of class {names}{more}; "
                f"mark at least one of each class 'train'"
            )


def _check_label_knowledge(data: Data) -> None:
    """Features of labels `[C, F']` and weights of label–label edges `[C, C]`, where the user gives them."""
    classes = len(data.class_names)
    label_x, among = data.get("label_x"), data.get("label_adjacency")
    if label_x is not None and (label_x.dim() != 2 or label_x.shape[0] != classes or label_x.shape[1] == 0):
        raise InputError(
            f"label_x of {data.name} has the shape {list(label_x.shape)}; it must have a row for each of the "
            f"{classes} classes"
        )
    if label_x is not None and not torch.isfinite(label_x).all():
        raise InputError(f"label_x of {data.name} holds numbers that are not finite; every label feature must be")
    if among is not None and list(among.shape) != [classes, classes]:
        raise InputError(
            f"label_adjacency of {data.name} has the shape {list(among.shape)}; it must be [{classes}, {classes}]"
        )
    if among is not None and not (torch.isfinite(among).all() and (among >= 0).all()):
        raise InputError(f"label_adjacency of {data.name} must hold weights that are finite and not negative")


def _first(mask: Tensor) -> int:
    return int(mask.to(torch.uint8).argmax())


def _id(data: Data, node: int) -> str:
    return repr(data.node_id[node].item() if isinstance(data.node_id[node], np.generic) else data.node_id[node])
