"""Modules that are imported when one of their names is first used.

PyG, pandas, PyArrow, scikit-learn and SciPy take longer to import than a small graph takes to train, and most commands
need none or few of them. A module that is needed by the way is named here, at the top of the file that uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
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


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a package that imports names from its modules when they are first used.

    Args:
        package: name of the package.
        modules: from a module of the package to its names, with spaces between them.
    """
    sources = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{sources[name]}"), name)

    return get


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
