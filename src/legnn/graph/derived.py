"""What layers derive from a sample alone, such as the transposes of its edges, computed before they read it."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TypeVar, cast

from legnn.ops.csr.transposition import Transposition

T = TypeVar("T")


def fill_cache_like(done: object, anew: object) -> None:
    """Computes of `anew` what is cached of `done`, which is alike: its cached properties, and those of what they hold.

    What is cached by keys (`LabelGraph.cached`) is left to the layers.
    """
    if isinstance(done, list | tuple) and isinstance(anew, list | tuple):
        for one, other in zip(done, anew, strict=True):
            fill_cache_like(one, other)
    elif _has_cache(done):
        for name, value in list(vars(done).items()):
            # a field, or a property that is computed and cached here
            fill_cache_like(value, getattr(anew, name, None))


def copy_with_cache(item: T) -> T:
    """Returns the item anew, with what is cached of it; what is cached of the copy later is not in the item."""
    if isinstance(item, list):
        return cast(T, [copy_with_cache(part) for part in item])
    if isinstance(item, dict):
        return cast(T, dict(item))
    if not _has_cache(item):
        return item
    new = object.__new__(type(item))
    new.__dict__.update((name, copy_with_cache(value)) for name, value in vars(item).items())
    return new


def _has_cache(item: object) -> bool:
    return (is_dataclass(item) and not isinstance(item, type)) or isinstance(item, Transposition)
