"""The graphs that can be named, with figures that are kept until a file changes: reading all of them takes seconds."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_type_hints

import legnn
from legnn.cli.loading import loading
from legnn.config.facts import Statistics
from legnn.errors import InputError
from legnn.files import cache_folder, data_folder, write_text

KEPT = "statistics.json"
"""In the cache folder."""
OTHER = (KEPT, "embeddings")
"""What the cache folder holds besides data; it may be the data folder, too."""


def list_graphs() -> list[Statistics | str]:
    """Returns the statistics of the named data sets and of the folders of tables in the data folder.

    A set that is not on this machine is its name alone; nothing is downloaded.
    """
    key = _state_of_files()
    kept = _read_kept(key)
    if kept is None:
        kept = list(_measure())
        with suppress(OSError, RuntimeError):  # a cache that cannot be written is no error
            rows = [one if isinstance(one, str) else one._asdict() for one in kept]
            write_text(cache_folder() / KEPT, json.dumps({"key": key, "rows": rows}))
    return kept


def _measure() -> Iterator[Statistics | str]:
    # PyTorch takes seconds to import, which a list that is kept does not need
    with loading():
        from legnn.data import statistics
        from legnn.datasets import CATALOG, load, table_folders, without_downloads

    with without_downloads():
        for name in CATALOG:
            try:
                yield statistics(load(name))
            except InputError:
                yield name
        for name in table_folders():
            with suppress(InputError):
                yield statistics(load(name))


def _state_of_files() -> str:
    """A digest of names, sizes and times of all files of the data folder, and of the code that reads them."""
    package = Path(legnn.__file__).parent
    digest = hashlib.blake2b(f"{legnn.__version__} {data_folder()}".encode(), digest_size=16)
    own = [str(cache_folder().resolve() / name) for name in OTHER]
    for folder in (data_folder().resolve(), *(package / room for room in ("data", "datasets", "io"))):
        for place, folders, files in os.walk(folder):
            folders[:] = sorted(one for one in folders if os.path.join(place, one) not in own and one != "__pycache__")
            for path in (os.path.join(place, name) for name in sorted(files)):
                with suppress(OSError):
                    about = os.stat(path)
                    if path not in own:
                        digest.update(f"{path} {about.st_size} {about.st_mtime_ns}".encode())
    return digest.hexdigest()


def _read_kept(key: str) -> list[Statistics | str] | None:
    types = get_type_hints(Statistics)
    try:
        content = json.loads((cache_folder() / KEPT).read_text(encoding="utf-8"))
        if content["key"] != key:
            return None
        rows = [one if isinstance(one, str) else Statistics(**one) for one in content["rows"]]
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, RecursionError):
        return None
    values = [pair for one in rows if isinstance(one, Statistics) for pair in one._asdict().items()]
    return rows if all(type(value) is types[name] for name, value in values) else None
