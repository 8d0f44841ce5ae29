"""From what a reader found, or a user's own `Data`, to the one form the rest of the library relies on."""

from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from legnn.data.splits import Split, pick_split, stratified_split
from legnn.errors import InputError

MASKS = ("train_mask", "val_mask", "test_mask")
TYPES = ("node_type", "type_names", "target_mask", "type_columns")
"""What a graph of several node types has beside; all of it or nothing."""


def complete(data: Data, *, name: str, split: int | None, draw: bool = True) -> Data:
    """A new `Data` with every field of the library's form; what is missing and can be made is made.

    Masks [M, K] give their column `split`. Without masks a stratified split is drawn with the seed `split`, and a note
    says so. `data` itself is left as it is.

    Args:
        data: at least `x`, `y` and `edge_index`. Optional: masks, `edge_weight` [E], `node_id`, `class_names`,
            `feature_names`, `notes`, `text_features`; prior knowledge of the labels, `label_x` [C, F'] and
            `label_adjacency` [C, C]; of several node types, what `heterogeneous.to_homogeneous` adds.
        name: what to call the graph.
        split: which of the fixed splits, or the seed of the drawn one.
        draw: whether a missing split is drawn; otherwise no node is in any part.
    """
    if data.get("y") is None and not draw and isinstance(data.get("x"), Tensor):
        data = copy(data)
        data.y = torch.full((len(data.x),), -1)
    for field in ("x", "y", "edge_index"):
        if data.get(field) is None:
            raise InputError(f"{name} has no {field}; a Data must have x [M, F], y [M] and edge_index [2, E]")
        if not isinstance(data[field], Tensor):
            raise InputError(f"{field} of {name} is a {type(data[field]).__name__}; it must be a tensor")
    x, y = dense_floats(data.x, name), class_indices(data.y, name)
    notes = list(data.get("notes") or [])
    if data.get("edge_attr") is not None and data.get("edge_weight") is None:
        notes.append(f"edge_attr of {name} is left aside; a weight for each edge goes into edge_weight.")
    masks = _given_masks(data, name)
    if masks is None and not draw:
        nobody = torch.zeros(len(y), dtype=torch.bool)
        chosen = Split(nobody, nobody.clone(), nobody.clone())
    elif masks is None:
        seed = 0 if split is None else split
        chosen = stratified_split(y, seed)
        notes.append(
            f"{name} comes without a split: 60/20/20 of the labeled nodes were drawn, class by class (seed {seed})."
        )
    else:
        chosen = pick_split(masks, split, name)

    completed = Data(x=x, y=y, edge_index=whole_numbers(data.edge_index, "edge_index", name).contiguous())
    completed.train_mask, completed.val_mask, completed.test_mask = chosen
    if data.get("edge_weight") is not None:
        completed.edge_weight = data.edge_weight.detach().cpu().to(torch.float32)
    for field in ("label_x", "label_adjacency"):
        if data.get(field) is not None:
            completed[field] = torch.as_tensor(data[field]).detach().cpu().to(torch.float32)
    completed.class_names = _class_names(data.get("class_names"), y)
    completed.node_id = node_ids(data.get("node_id"), len(y))
    completed.name = name
    completed.notes = notes
    # a Data may have a node_type of its own, which means nothing here; one that was laid out by type has all of these
    if all(data.get(field) is not None for field in TYPES):
        for field in TYPES:
            completed[field] = data[field]
    for field in ("computed_features", "feature_digest"):
        if data.get(field) is not None:
            completed[field] = data[field]
    for field in ("feature_names", "text_features"):
        set_or_none(completed, field, data.get(field))
    return completed


def set_or_none(data: Data, field: str, value: Any) -> None:
    """Give `data` a field that can be read even where it is None."""
    if value is not None:
        data[field] = value
    else:
        data.__dict__[field] = None  # PyG's storage drops a None, and reading the field would then fail


def dense_floats(x: Tensor, name: str) -> Tensor:
    """Float32 in one piece of memory on the CPU, from numbers of any kind and layout."""
    x = x.detach().cpu()
    if x.is_complex():
        raise InputError(f"x of {name} is complex; features must be real numbers")
    dense = x if x.layout == torch.strided else x.to_dense()
    return dense.to(torch.float32).contiguous()


def class_indices(y: Tensor, name: str) -> Tensor:
    """Int64 [M] from integers, or from floats where NaN is unlabeled; [M, 1] is taken as [M]."""
    y = y.detach().cpu()
    if y.dim() == 2 and y.shape[1] == 1:
        y = y.squeeze(1)
    if y.dim() != 1:
        raise InputError(f"y of {name} has the shape {list(y.shape)}; it must be [M], one class index for each node")
    if y.is_floating_point():
        y = torch.where(y.isnan(), -1.0, y)
    y = whole_numbers(y, "y", name)
    if len(y) and int(y.max()) >= len(y):
        raise InputError(
            f"y of {name} goes up to {int(y.max())} with {len(y)} nodes; it must hold class indices from 0 up"
        )
    return y


def whole_numbers(values: Tensor, field: str, name: str) -> Tensor:
    """Int64 on the CPU, from integers or from floats that are whole."""
    values = values.detach().cpu()
    if values.is_floating_point() or values.is_complex():
        whole = values.real.to(torch.int64)
        if not torch.equal(whole.to(values.dtype), values):
            raise InputError(f"{field} of {name} holds numbers that are not whole; it must hold int64 indices")
        return whole
    return values.to(torch.int64)


def _given_masks(data: Data, name: str) -> Split | None:
    missing = [mask for mask in MASKS if data.get(mask) is None]
    if len(missing) == len(MASKS):
        return None
    if missing:
        raise InputError(
            f"{name} has no {' and no '.join(missing)}; give train_mask, val_mask and test_mask, or none to draw them"
        )
    for mask in MASKS:
        if data[mask].dim() not in (1, 2) or data[mask].shape[0] != len(data.y):
            raise InputError(
                f"{mask} of {name} has the shape {list(data[mask].shape)}; it must be [{len(data.y)}], a bool for each "
                f"node, or [{len(data.y)}, K] for K splits"
            )
    return Split(*(data[mask].detach().cpu() for mask in MASKS))


def _class_names(given: Any, y: Tensor) -> list[str | int | float]:
    if given is None:
        return list(range(int(y.max()) + 1)) if len(y) else []
    return [name.item() if isinstance(name, np.generic) else name for name in given]


def node_ids(given: Any, nodes: int) -> np.ndarray:
    """`[M]` ids as int64 or as text; numbers from 0 up where none are given."""
    if given is None:
        return np.arange(nodes)
    ids = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    return ids.astype(np.int64) if ids.dtype.kind in "iu" else ids.astype(str).astype(object)
