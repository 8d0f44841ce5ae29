"""Whether a process holds the lock of a folder."""

from pathlib import Path

from legnn.errors import FolderInUse
from legnn.locks import hold_folder


def is_locked(folder: Path) -> bool:
    """Whether another process writes to the folder."""
    if not folder.is_dir():
        return False
    try:
        with hold_folder(folder):
            return False
    except FolderInUse:
        return True
