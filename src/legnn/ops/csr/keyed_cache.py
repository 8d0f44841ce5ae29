"""The cache of a graph and its parts: what is derived from them is computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

import torch

T = TypeVar("T")


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

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_values": {}}


def derived(make: Callable[[Any], T]) -> T:
    """A property of a `KeyedCache`, computed once for each object."""
    name = make.__name__
    return cast(T, property(lambda item: item.cached(name, partial(make, item)), doc=make.__doc__))
