"""What is compared bit for bit: all that a folder holds, but times."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legnn.locks import LOCK, OWNER

TIMES = ("seconds", "time")
"""Keys of JSON files that differ between two runs of the same settings."""


@dataclass(frozen=True)
class Kill:
    """What became of a process that was killed."""

    kind: str
    moment: str
    kills: int
    """How often it was killed until it came to its end."""
    fault: str | None = None
    """What was not as promised."""


def has_one_sentence(output: Path) -> bool:
    """Whether what a process printed holds one sentence of the program, and no traceback."""
    text = output.read_text(errors="replace")
    return sum(line.startswith("legnn: ") for line in text.splitlines()) == 1 and "Traceback" not in text


def outcome(folder: Path) -> dict[str, str]:
    """Returns a digest of each file under a folder, by its name, without the times that results hold."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in (LOCK, OWNER))
    return {str(path.relative_to(folder)): _digest(path) for path in files}


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Returns the names of files that differ, or that only one of two outcomes has."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".json":
        content = json.dumps(_without_times(json.loads(content), path.name)).encode()
    return hashlib.sha256(content).hexdigest()


def _without_times(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        # a result holds times, and its digest depends on them
        left_out = TIMES
        return {key: _without_times(one, name) for key, one in value.items() if key not in left_out}
    return [_without_times(one, name) for one in value] if isinstance(value, list) else value
