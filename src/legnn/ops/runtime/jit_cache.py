"""Numba's cache of compiled functions, with digests: code that was damaged on the disk is compiled anew, never run."""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from numba.core import environment
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

DIGEST_BYTES = 16


class CheckedCacheFile(IndexDataCacheFile):
    """The files of one function: index and compiled code, each behind a digest of itself."""

    def _load_index(self) -> dict[Any, str]:
        try:
            content = BytesIO(_read_checked(Path(self._index_path)))
        except OSError:
            return {}
        if pickle.load(content) != self._version:
            return {}
        stamp, overloads = pickle.load(content)
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        # an `OSError` is known to numba: the file is missing, and the function is compiled
        return _Unpickler(BytesIO(_read_checked(Path(self._data_path(name))))).load()

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        content = BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(_digest(content.getvalue()) + content.getvalue())


class _Unpickler(pickle.Unpickler):
    """Loads a compiled function without the modules of numba's functions that were compiled into it.

    Importing them takes longer (0.15 s) than the rest of loading all kernels of a run.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (environment.__name__, "_rebuild_env"):
            return _rebuild_environment
        return super().find_class(module, name)


def _rebuild_environment(module: str, constants: list[Any], name: str) -> environment.Environment:
    """Numba's `_rebuild_env`, which would import `module`; compiled code reads the constants alone."""
    found = environment.lookup_environment(name)
    if found is None:
        found = environment.Environment(vars(sys.modules[module]) if module in sys.modules else {"__name__": module})
        found.consts[:] = constants
        found.env_name = name
        environment.Environment._memo[name] = found
    return found


class CheckedCache(FunctionCache):
    """The cache of one function; raises `RuntimeError` where there is no folder for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        plain: IndexDataCacheFile = self._cache_file  # type: ignore[has-type]
        base = plain._index_name.removesuffix(".nbi")
        stamp = plain._source_stamp, shared_sources()
        self._cache_file = CheckedCacheFile(self._cache_path, f"{base}.checked", stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Returns a compiled function, or None if it is not kept.

        Numba's own would import all that compiling needs, which takes longer (0.5 s) than loading all kernels of a run.
        """
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps a compiled function; where that is not possible, as on a full disk, it is compiled again next time."""
        with suppress(OSError):
            super().save_overload(sig, data)


@lru_cache(1)
def shared_sources() -> tuple[tuple[str, float, int], ...]:
    """When the files were changed, and how large they are, whose functions are compiled into kernels of other files."""
    ops = Path(__file__).parents[1]
    files = sorted([*ops.glob("runtime/*.py"), *ops.glob("*/numba_*.py")])
    return tuple((file.name, file.stat().st_mtime, file.stat().st_size) for file in files)


def _read_checked(path: Path) -> bytes:
    """The content of a file behind its digest; raises `OSError` if it is another."""
    content = path.read_bytes()
    digest, content = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if digest != _digest(content):
        raise OSError(f"{path} is damaged")
    return content


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
