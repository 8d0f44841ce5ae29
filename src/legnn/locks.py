"""One writer a folder: a lock that a process holds while it writes, and that ends with it however it ends."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from legnn.errors import FolderInUse, InputError

LOCK = ".lock"
"""In a folder that is written to. The system lets go of it when the process ends, or the machine: a file that a crash
left is no lock."""

UNSUPPORTED = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""File systems without locks answer so; a folder there is written to without one."""


class _Held:
    """A lock of this process."""

    def __init__(self, file: int) -> None:
        self.file, self.thread, self.depth = file, threading.get_ident(), 1


_held: dict[Path, _Held] = {}
_guard = threading.Lock()


@contextmanager
def hold_folder(folder: Path, *, again: bool = False) -> Iterator[None]:
    """Within it this thread is the only writer to `folder`, which is made if it is not there; raises `FolderInUse`.

    Readers ask for nothing. Folders that were made and left empty are removed.

    Args:
        again: whether the thread may hold it already, as a part of the work that locked it.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    if not made and not folder.is_dir():
        raise InputError(f"{folder} is already there and is a file; give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    key = folder.resolve()
    with _guard:
        held = _held.get(key)
        if held is None:
            held = _held[key] = _Held(_lock(folder))
        elif again and held.thread == threading.get_ident():
            held.depth += 1
        else:
            raise _in_use(folder, "this process")
    try:
        yield
    finally:
        _release(key, held, made=made)


def is_being_written(folder: Path) -> bool:
    """Whether a process holds the lock of a folder, this one included."""
    try:
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in UNSUPPORTED
    finally:
        os.close(file)
    return False


def _lock(folder: Path) -> int:
    """The open file of a lock; raises `FolderInUse`."""
    path = folder / LOCK
    while True:
        try:
            # open for writing: over a network an exclusive lock needs that
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:  # who held it removed the folder, which was empty
            folder.mkdir(parents=True, exist_ok=True)
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                who = os.pread(file, 200, 0).decode(errors="replace").strip()
                os.close(file)
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise
                raise _in_use(folder, f"another process ({who})" if who else "another process") from None
        if _is_at(path, file):
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return file
        os.close(file)  # who held it removed the file after it was opened here


def _is_at(path: Path, file: int) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(file))


def _in_use(folder: Path, who: str) -> FolderInUse:
    return FolderInUse(f"{who} is writing to {folder}; wait until it has ended, or give another folder as `out`")


def _release(key: Path, held: _Held, *, made: list[Path]) -> None:
    with _guard:
        held.depth -= 1
        if held.depth or _held.get(key) is not held:
            return
        del _held[key]
        with suppress(OSError):  # the folder may be gone
            # while it is held: nobody else has locked the file that is removed
            if _is_at(key / LOCK, held.file):
                (key / LOCK).unlink()
            for path in made:
                path.rmdir()
        os.close(held.file)


def _forget() -> None:
    """In a process that was forked: the locks are those of its parent, and must end with that."""
    global _guard
    _guard = threading.Lock()
    for held in _held.values():
        with suppress(OSError):
            os.close(held.file)
    _held.clear()


os.register_at_fork(after_in_child=_forget)
