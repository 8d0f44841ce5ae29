"""Tensors and a few numbers in one safetensors file. Reading one executes nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from legnn.errors import InputError, first_line
from legnn.files import atomic_write

_META = "legnn"


def save_tensors(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any] | None = None) -> None:
    """Write `tensors` and the JSON-able `meta` to `path`, atomically and with a digest of the contents."""
    held = {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}
    numbers = dict(meta or {})
    header = json.dumps({"meta": numbers, "digest": _digest(held, numbers)})
    with atomic_write(path) as file:
        file.write(save(held, metadata={_META: header}))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read back what `save_tensors` wrote, on the CPU; a damaged or foreign file is refused."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})[_META])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        meta = header["meta"]
        intact = isinstance(meta, dict) and header["digest"] == _digest(tensors, meta)
    except (SafetensorError, KeyError, ValueError, OSError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged or not a file of legnn's ({first_line(error)}); restore it from a copy"
        ) from None
    if not intact:
        raise InputError(f"{path} is damaged (its contents do not match its digest); restore it from a copy")
    return tensors, meta


def _digest(tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    if meta:
        digest.update(json.dumps(meta, sort_keys=True).encode())
    return digest.hexdigest()
