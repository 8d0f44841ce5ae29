"""Digests of the files that the program reads again and nothing changes once they are written: `digests.json`."""

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
    """Content of `digests.json`."""

    files: dict[str, str]


def write_digests(folder: Path, digests: Mapping[str, str]) -> None:
    """Writes the digests of files by their names, and keeps those of other files."""
    before = read_json(folder / DIGESTS, Digests).files if (folder / DIGESTS).is_file() else {}
    write_json(folder / DIGESTS, Digests({**before, **digests}))


def has_digest(path: Path) -> bool:
    """Whether the digest of a file is known, or the folder has no digests."""
    digests = path.with_name(DIGESTS)
    return not digests.is_file() or path.name in read_json(digests, Digests).files


def check_digest(path: Path, digest: str | None = None, *, is_listed: bool = True) -> None:
    """Raises `InputError` if a file is not the one whose digest is known, where the folder has digests.

    Args:
        path: of the file.
        digest: of its content; None for that of its bytes.
        is_listed: False for a file that not every folder has.
    """
    digests = path.with_name(DIGESTS)
    if not digests.is_file():
        return
    known = read_json(digests, Digests).files
    if path.name not in known:
        if not is_listed:
            return
        raise InputError(f"{digests} is damaged (it lacks {path.name}); restore it from a copy")
    if not path.is_file():
        raise InputError(f"there is no file {path}; restore it from a copy")
    if (digest_bytes(path.read_bytes()) if digest is None else digest) != known[path.name]:
        other = "to train with other settings, give it as `config` and another `out`"
        advice = other if path.suffix == ".yaml" else "or train anew"
        raise InputError(f"{path} was changed after the run began; restore it from a copy, {advice}")
