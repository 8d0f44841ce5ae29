"""Tensors of any type and layout, converted to the library's own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from legnn.data.splits import MASKS, from_masks
from legnn.errors import InputError
from legnn.notes import Note

PARTS = ("", "training", "validation", "test")
"""Names of the splits in messages."""


def shape_error(field: str, values: Tensor, name: str, must: str) -> InputError:
    """Returns the error for a field of the graph `name` that has another shape than it `must`."""
    return InputError(f"{field} of {name} has the shape {list(values.shape)}; it must {must}")


def to_features(x: Tensor, name: str) -> Tensor:
    """Returns contiguous float32 on the CPU, from numbers of any type and layout."""
    x = x.detach().cpu()
    if x.is_complex():
        raise InputError(f"x of {name} is complex; features must be real numbers")
    dense = x if x.layout == torch.strided else x.to_dense()
    return dense.to(torch.float32).contiguous()


def to_classes(y: Tensor, name: str) -> Tensor:
    """Returns int64 [M] from integers, or from floats where NaN is unlabeled; [M, 1] is read as [M]."""
    y = y.detach().cpu()
    if y.dim() == 2 and y.shape[1] == 1:
        y = y.squeeze(1)
    if y.dim() != 1:
        raise shape_error("y", y, name, "be [M], one class index for each node")
    if y.is_floating_point():
        y = torch.where(y.isnan(), -1.0, y)
    y = to_integers(y, "y", name)
    if len(y) and int(y.max()) >= len(y):
        raise InputError(
            f"y of {name} goes up to {int(y.max())} with {len(y)} nodes; it must hold class indices from 0 up"
        )
    return y


def to_integers(values: Tensor, field: str, name: str) -> Tensor:
    """Returns int64 on the CPU, from integers or from floats without a fraction."""
    values = values.detach().cpu()
    if values.is_floating_point() or values.is_complex():
        whole = values.real.to(torch.int64)
        if not torch.equal(whole.to(values.dtype), values):
            raise InputError(f"{field} of {name} holds numbers that are not whole; it must hold int64 indices")
        return whole
    return values.to(torch.int64)


def to_node_ids(node_id: Any, num_nodes: int) -> np.ndarray:
    """Returns ids [M] as int64 or text; numbers from 0 up where none are given."""
    if node_id is None:
        return np.arange(num_nodes)
    ids = node_id.detach().cpu().numpy() if isinstance(node_id, Tensor) else np.asarray(node_id)
    return ids.astype(np.int64) if ids.dtype.kind in "iu" else ids.astype(str).astype(object)


def to_class_names(class_names: Any, y: Tensor) -> list[str | int | float]:
    """Returns the classes in order; numbers from 0 up where none are given."""
    if class_names is None:
        return list(range(int(y.max()) + 1)) if len(y) else []
    return [name.item() if isinstance(name, np.generic) else name for name in class_names]


def to_notes(notes: Any) -> list[Note]:
    """Returns the notes of a graph, which may be texts."""
    return [note if isinstance(note, Note) else Note("data", str(note)) for note in notes or ()]


def to_floats(values: Any) -> Tensor | None:
    """Returns float32 on the CPU, or None for None."""
    return None if values is None else torch.as_tensor(values).detach().cpu().to(torch.float32)


def to_split(fields: Mapping[str, Any], nodes: int, node_id: np.ndarray, name: str) -> Tensor | None:
    """Returns the split `[M]` or the splits `[M, K]` of masks by name, int8; None without masks."""
    masks = {mask: values for mask in MASKS if (values := fields.get(mask)) is not None}
    if not masks:
        return None
    if missing := [mask for mask in MASKS if mask not in masks]:
        raise InputError(
            f"{name} has no {' and no '.join(missing)}; give train_mask, val_mask and test_mask, or none to draw them"
        )
    for mask, values in masks.items():
        if values.dim() not in (1, 2) or len(values) != nodes:
            must = f"be [{nodes}], a bool for each node, or [{nodes}, K] for K splits"
            raise shape_error(mask, values, name, must)
    try:
        return from_masks({mask: values.detach().cpu() for mask, values in masks.items()})
    except ValueError as error:
        node, parts = error.args
        both = " and the ".join(PARTS[value] for value in parts)
        raise InputError(
            f"node {node_id[node : node + 1].tolist()[0]!r} of {name} is in both the {both} set; choose one"
        ) from None
