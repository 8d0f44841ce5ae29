"""The cache of a graph and its parts: what is derived from them is computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar, cast

import torch
from torch import Tensor

T = TypeVar("T", bound=Any)


@dataclass(frozen=True, eq=False)
class KeyedCache:
    """An object that caches what is derived from it. A copy, also one by `dataclasses.replace`, begins without."""

    _values: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def cached(self, key: object, make: Callable[[], T]) -> T:
        """Returns `make()`, called once for each `key`. The key of a `derived` property is its name."""
        if key not in self._values:
            if torch.compiler.is_compiling():
                # the tensors of a trace have no values
                return make()
            # tensors made in inference mode could not be saved for a later backward pass
            with torch.inference_mode(False), torch.no_grad():
                return cast(T, self._values.setdefault(key, make()))
        return cast(T, self._values[key])

    def to(self, device: torch.device | str) -> Self:
        """Returns it on `device`; from pinned memory without synchronizing."""
        return move_tensors(self, device)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_values": {}}


def derived(make: Callable[[Any], T]) -> T:
    """A property of a `KeyedCache`, computed once for each object."""
    name = make.__name__
    return cast(T, property(lambda item: item.cached(name, partial(make, item)), doc=make.__doc__))


def map_tensors(item: T, function: Callable[[Tensor], Tensor]) -> T:
    """Returns `item`, of dataclasses, tuples and tensors, anew with `function` of its tensors, called in a fixed order.

    What was cached of its dataclasses is not in the new ones.
    """
    if isinstance(item, Tensor):
        return cast(T, function(item))
    if is_dataclass(item) and not isinstance(item, type):
        names = [part.name for part in fields(item) if part.init]
        return replace(item, **{name: map_tensors(getattr(item, name), function) for name in names})
    if isinstance(item, tuple | list):
        parts = [map_tensors(part, function) for part in item]
        return type(item)(*parts) if hasattr(item, "_fields") else type(item)(parts)
    return item


def move_tensors(item: T, device: torch.device | str) -> T:
    """Returns `item` with its tensors on `device`; from pinned memory without synchronizing."""
    return map_tensors(item, lambda tensor: tensor.to(device, non_blocking=True))
