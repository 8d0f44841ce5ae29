"""Digests of the files that nothing changes once they are written: `digests.json` beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from legnn.errors import InputError
from legnn.files import digest_bytes
from legnn.typed_json import read_json, write_json

DIGESTS = "digests.json"


@dataclass(frozen=True)
class Digests:
    """What `digests.json` holds."""

    files: dict[str, str]


def write_digests(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Writes the digests of files by their names and contents, beside those that are there."""
    before = read_json(folder / DIGESTS, Digests).files if (folder / DIGESTS).is_file() else {}
    now = {name: digest_bytes(content) for name, content in contents.items()}
    write_json(folder / DIGESTS, Digests(before | now))


def check_digest(path: Path) -> None:
    """Raises `InputError` if a file is not the one whose digest is kept beside it, where one is."""
    kept = path.with_name(DIGESTS)
    if not kept.is_file():
        return
    known = read_json(kept, Digests).files
    if path.name not in known:
        raise InputError(f"{kept} is damaged (it lacks {path.name}); restore it from a copy")
    if digest_bytes(path.read_bytes()) != known[path.name]:
        other = "to train with other settings, give it as `config` and another `out`"
        what = other if path.suffix == ".yaml" else "or train anew"
        raise InputError(f"{path} was changed after the run began; restore it from a copy, {what}")
