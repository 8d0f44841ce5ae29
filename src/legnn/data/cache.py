"""Tensors that take long to compute from the data, kept in the user's cache folder."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from legnn.data.digest import digest_of
from legnn.files import atomic_write


def cached(parts: Iterable[str | Tensor], compute: Callable[[], Tensor]) -> Tensor:
    """Returns `compute()`, from the cache if it was computed before from the same `parts`.

    A cache that cannot be read or written is no error: the tensor is computed again.
    """
    name = f"{digest_of(parts)}.safetensors"
    try:
        return load_file(_folder() / name)["tensor"]
    except (OSError, RuntimeError, SafetensorError, KeyError):  # RuntimeError: the user has no home folder
        tensor = compute().contiguous()
    with suppress(OSError, RuntimeError), atomic_write(_folder() / name) as file:
        file.write(save({"tensor": tensor}))
    return tensor


def cache_folder() -> Path:
    """Returns the folder `legnn` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "legnn"


def _folder() -> Path:
    return cache_folder() / "embeddings"
