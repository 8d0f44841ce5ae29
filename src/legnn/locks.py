"""One writer per folder: a lock that a process holds while it writes, and that ends with the process."""

from __future__ import annotations

import errno
import inspect
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from legnn.errors import FolderInUse, InputError
from legnn.files import refuse_links, write_text

LOCK, OWNER = ".lock", ".lock-owner"
"""Files of a folder that is written to: the lock, which the system releases when the process or the machine ends, and
the process and host that hold it. A file that a crash left is no lock."""

UNSUPPORTED = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""Answers of file systems without locks; a folder there is written to without one."""

# recent releases would fall back to a lock that is a file, which a killed process leaves behind
_OPTIONS: dict[str, Any] = (
    {"fallback_to_soft": False} if "fallback_to_soft" in inspect.signature(FileLock.__init__).parameters else {}
)


@dataclass
class _Held:
    """A lock of this process."""

    lock: FileLock | None
    process: int
    thread: int
    depth: int = 1


_held: dict[Path, _Held] = {}
_guard = threading.Lock()


@contextmanager
def hold_folder(folder: Path, *, again: bool = False) -> Iterator[None]:
    """Makes this thread the only writer to `folder` within the context; raises `FolderInUse`.

    The folder is made if it does not exist. Readers need no lock. Folders that were made and left empty are removed.

    Args:
        again: whether the thread may hold it already, as a part of the work that locked it.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    if not missing and not folder.is_dir():
        raise InputError(f"{folder} is already there and is a file; give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    key = folder.resolve()
    with _guard:
        held = _held.get(key)
        if held is None or held.process != os.getpid():
            held = _held[key] = _Held(_lock(folder), os.getpid(), threading.get_ident())
        elif again and held.thread == threading.get_ident():
            held.depth += 1
        else:
            raise _in_use(folder, "this process")
    try:
        yield
    finally:
        _release(key, held, made=missing)


def contents(folder: Path) -> list[str]:
    """Returns the names in a folder, without the files of its lock; none if there is no folder."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    # a process that is killed while it writes the owner leaves a partial file
    return [name for name in names if name not in (LOCK, OWNER) and not name.startswith(f".{OWNER}.")]


def clear_folder(folder: Path) -> None:
    """Removes all that a folder holds but the files of its lock."""
    for path in (folder / name for name in contents(folder)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _lock(folder: Path) -> FileLock | None:
    """Returns the lock of a folder, None where the file system has none; raises `FolderInUse`."""
    path = folder / LOCK
    lock = FileLock(path, timeout=0, thread_local=False, **_OPTIONS)
    while True:
        refuse_links(folder)
        try:
            with suppress(FileExistsError):
                path.open("xb").close()
            before = path.lstat()
            lock.acquire()
            # the process that held it may have removed the file between both: then the lock is of no name
            if os.path.samestat(before, path.lstat()):
                for partial in folder.glob(f".{OWNER}.*"):
                    partial.unlink(missing_ok=True)
                write_text(folder / OWNER, f"{os.getpid()} on {socket.gethostname()}\n")
                return lock
            lock.release()
        except FileNotFoundError:  # the process that held it removed the file, and the folder if it was empty
            lock.release()
            folder.mkdir(parents=True, exist_ok=True)
        except Timeout:
            owner = _owner(folder / OWNER)
            raise _in_use(folder, f"another process ({owner})" if owner else "another process") from None
        except NotImplementedError:
            return None
        except OSError as error:
            if error.errno in UNSUPPORTED:
                return None
            raise


def _owner(path: Path) -> str:
    try:
        return "" if path.is_symlink() else path.read_bytes()[:200].decode(errors="replace").strip()
    except OSError:
        return ""


def _in_use(folder: Path, writer: str) -> FolderInUse:
    return FolderInUse(f"{writer} is writing to {folder}; wait until it has ended, or give another folder as `out`")


def _release(key: Path, held: _Held, *, made: list[Path]) -> None:
    with _guard:
        held.depth -= 1
        if held.depth or _held.get(key) is not held or held.process != os.getpid():
            return
        del _held[key]
        with suppress(OSError):  # the folder may be gone; on Windows an open file stays
            # before the lock ends: no other process holds the file that is removed
            (key / OWNER).unlink(missing_ok=True)
            if held.lock is not None:
                (key / LOCK).unlink(missing_ok=True)
            for path in made:
                path.rmdir()
        if held.lock is not None:
            held.lock.release()
