"""Files and folders that are written whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"


def remove_partial(folder: Path) -> None:
    """Take away what a process that was killed while writing left behind."""
    for path in folder.glob(f".*{PARTIAL}"):
        path.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` once it is complete, and leaves no trace if it never is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with partial.open("xb") as file:
            yield file
            # the bytes must be on the disk before the name points at them
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to fill that takes the place of `path`, nothing or an empty folder, once it is complete."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    partial.mkdir()
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic_write(path) as file:
        file.write(text.encode())
