"""Atomic writes: files that are written completely or not at all. Digests, links, the folders of data and caches."""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from legnn.errors import InputError

PARTIAL = ".partial"
_PARTIAL_NAME = re.compile(rf"\..+\.[0-9a-f]{{8}}{re.escape(PARTIAL)}")


def free_path(path: Path) -> Path:
    """Returns `path`, with a number at its end if it exists."""
    free, number = path, 2
    while free.exists():
        free, number = path.with_name(f"{path.name}-{number}"), number + 1
    return free


def is_partial(path: Path) -> bool:
    """Whether a file has the name of one that `atomic_write` has not finished."""
    return _PARTIAL_NAME.fullmatch(path.name) is not None


def cache_folder() -> Path:
    """Returns the folder `legnn` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "legnn"


def data_folder() -> Path:
    """Returns `LEGNN_DATA`, or `legnn` in the user's cache folder."""
    if chosen := os.environ.get("LEGNN_DATA"):
        return Path(chosen).expanduser()
    return cache_folder()


def remove_partial(folder: Path) -> None:
    """Remove what a process that was killed while writing has left in `folder`."""
    for path in folder.glob(f".*{PARTIAL}"):
        path.unlink(missing_ok=True)


def refuse_link(path: Path) -> None:
    """Raises `InputError` for a symbolic link in the place of a file or folder that legnn makes itself.

    Its target, which may be anywhere, is neither read nor changed.
    """
    if path.is_symlink():
        raise InputError(f"{path} is a symbolic link, and legnn makes none; remove it, or restore the file from a copy")


def refuse_links(folder: Path) -> None:
    """Raises `InputError` if anything in a folder of legnn's is a symbolic link; the folder itself may be one."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            refuse_link(Path(parent, name))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within it an error in writing, such as a full disk, names `path`."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or str(path) in str(error):
            raise
        if error.errno is not None and error.strerror is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise OSError(f"{path} could not be written: {error}") from error


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` at the end of the `with` block, and is removed after an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with naming(path), partial.open("xb") as file:
            yield file
            # the bytes must be on disk before the name refers to them
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_write(path) as file:
        file.write(text.encode())


def new_digest() -> hashlib.blake2b:
    """Returns a hash, the same on any machine, of the bytes that it is updated with."""
    return hashlib.blake2b(digest_size=16)


def digest_bytes(content: bytes | memoryview) -> str:
    """Returns the digest of bytes."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def digest_file(path: Path) -> str:
    """Returns the digest of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, new_digest).hexdigest()
