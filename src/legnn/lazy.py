"""Modules that are imported when one of their names is first used.

PyG, pandas, PyArrow, scikit-learn and SciPy take longer to import than a small graph takes to train, and most commands
need none or few of them. A module that is needed by the way is named here, at the top of the file that uses it.
"""

from __future__ import annotations

import atexit
import gc
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any


class _LazyModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)

    def __repr__(self) -> str:
        return f"<lazy module {self._name!r}>"


def lazy_module(name: str) -> Any:
    """Returns a stand-in for the module `name`, which imports it when an attribute is first asked for.

    >>> pyg_utils = lazy_module("torch_geometric.utils")
    >>> pyg_utils.softmax(score, target)
    """
    return _LazyModule(name)


@contextmanager
def importing() -> Iterator[None]:
    """Context of imports whose objects, hundreds of thousands, stay to the end of the process.

    The garbage collector neither looks through them again and again while they are made, nor once more at the end,
    which took 0.6 s together.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        atexit.register(_end_collection)
        if collects:
            gc.enable()


def _end_collection() -> None:
    """Leaves the objects of this process to the system; those of Triton have to be freed, or it prints their names."""
    if "triton._C.libtriton" in sys.modules:
        gc.unfreeze()
    else:
        gc.freeze()


def call_pickled(function: bytes, *arguments: Any) -> Any:
    """Returns `pickle.loads(function)(*arguments)`, for a new process: what the function needs is imported here."""
    with importing():
        call = pickle.loads(function)
    return call(*arguments)


def is_a(value: object, module: str, *names: str) -> bool:
    """Whether `value` is an instance of a class in `module`, which is not imported for it.

    Of a class that nobody has imported there is no instance.
    """
    loaded = sys.modules.get(module)
    kinds = (getattr(loaded, name, None) for name in names)
    return isinstance(value, tuple(kind for kind in kinds if kind is not None))


if TYPE_CHECKING:
    import pandas as pandas
else:
    pandas = lazy_module("pandas")
