"""Files that are written whole or not at all."""

import os
import secrets
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
def whole_or_nothing(path: Path) -> Iterator[BinaryIO]:
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


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_or_nothing(path) as file:
        file.write(text.encode())
