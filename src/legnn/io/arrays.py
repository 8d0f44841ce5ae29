"""Arrays in `.npy` files: mapped into memory, written in chunks. Opening a file executes nothing."""

import math
import mmap
import os
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

from legnn.io.progress import progress_bar

CHUNK = 1 << 26
"""Bytes that are written at a time."""

LARGE = 1 << 28
"""Arrays of at least this many bytes take seconds to write: a progress bar is shown."""


def map_array(path: Path) -> np.ndarray:
    """Returns the array of a file, mapped: its pages are read on first use, and the system may drop them again.

    All processes that map a file share one copy of it. Writing to the array changes a private copy of the page.

    Raises `OSError` if it cannot be opened, `ValueError` if it holds no array, a part of one, or Python objects.
    """
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"it is an array of the version {version}")
        shape, is_fortran, kind = _HEADERS[version](file)
        begin = file.tell()
        end = begin + kind.itemsize * math.prod(shape)
        if kind.hasobject:
            raise ValueError("it holds Python objects")
        if os.fstat(file.fileno()).st_size < end:
            raise ValueError("it is cut short")
        return np.ndarray(shape, kind, _map(file, end), begin, order="F" if is_fortran else "C")


_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def _map(file: BinaryIO, size: int) -> mmap.mmap:
    if sys.platform != "linux":
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    # Linux would reserve memory for the pages that may be written to, and refuse a file larger than the memory
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)  # the name is in Python from 3.13 on
    return mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE | no_reserve, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def write_array(path: Path, array: np.ndarray) -> None:
    """Writes `array` as a new file, in order of its rows, without a copy of more than one chunk."""
    rows = max(CHUNK // max(array[:1].nbytes, 1), 1)
    is_large = array.nbytes >= LARGE
    with path.open("xb") as file, progress_bar(f"writing {path.name}", len(array), visible=is_large) as done:
        header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for begin in range(0, len(array), rows):
            file.write(np.ascontiguousarray(array[begin : begin + rows]).data)
            done(begin + rows)
        file.flush()
        os.fsync(file.fileno())
