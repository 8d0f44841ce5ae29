"""Digests of the files that nothing changes once they are written: `digests.json` beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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


@contextmanager
def renew_digest(path: Path) -> Iterator[None]:
    """Within it a file is written anew whose digest is kept beside it, where one is."""
    kept = path.with_name(DIGESTS)
    known = read_json(kept, Digests).files if kept.is_file() else {}
    if path.name not in known:
        yield
        return
    # without the digest while the file is replaced: whoever is killed in between leaves a folder that can be read
    write_json(kept, Digests({name: digest for name, digest in known.items() if name != path.name}))
    yield
    write_digests(path.parent, {path.name: path.read_bytes()})


def has_digest(path: Path) -> bool:
    """Whether the digest of a file is kept beside it, or none is."""
    kept = path.with_name(DIGESTS)
    return not kept.is_file() or path.name in read_json(kept, Digests).files


def check_digest(path: Path, *, is_listed: bool = True) -> None:
    """Raises `InputError` if a file is not the one whose digest is kept beside it, where one is.

    Args:
        is_listed: False for a file that may have no digest: one that not every run has, or that commands write anew.
    """
    kept = path.with_name(DIGESTS)
    if not kept.is_file():
        return
    known = read_json(kept, Digests).files
    if path.name not in known:
        if not is_listed:
            return
        raise InputError(f"{kept} is damaged (it lacks {path.name}); restore it from a copy")
    if not path.is_file():
        raise InputError(f"there is no file {path}; restore it from a copy")
    if digest_bytes(path.read_bytes()) != known[path.name]:
        other = "to train with other settings, give it as `config` and another `out`"
        what = other if path.suffix == ".yaml" else "or train anew"
        raise InputError(f"{path} was changed after the run began; restore it from a copy, {what}")
