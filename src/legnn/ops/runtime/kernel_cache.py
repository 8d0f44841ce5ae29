"""The folder in which numba caches compiled kernels.

Numba compiles a kernel anew when the file that defines it has changed, but not when a function changed that it calls
from another file. So the name of the folder is a digest of the sources of all operations.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock

from numba import config

from legnn.files import cache_folder

_lock = Lock()


@contextmanager
def caching() -> Iterator[bool]:
    """Within it, functions that are decorated with `cache=True` are cached in our folder; False if there is none."""
    with _lock:
        before = config.CACHE_DIR
        folder = _folder(before)
        config.CACHE_DIR = folder or before
        try:
            yield folder is not None
        finally:
            config.CACHE_DIR = before


@lru_cache(1)
def _folder(chosen: str) -> str | None:
    """A folder in `chosen`, the user's cache folder, or that for temporary files, which nobody else can write to."""
    name = f"kernels-{_digest_of_sources()}"
    user = os.getuid() if hasattr(os, "getuid") else None
    usual = [cache_folder() / name, Path(tempfile.gettempdir()) / f"legnn-{user}-{name}"]
    for folder in [Path(chosen) / name] if chosen else usual:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        except OSError:
            continue
        # what is in it will be run: it must not have been made by another user
        if os.access(folder, os.W_OK) and user in (None, folder.lstat().st_uid):
            return str(folder)
    return None


def _digest_of_sources() -> str:
    digest = blake2b(digest_size=8)
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
