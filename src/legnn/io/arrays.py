"""Arrays in `.npy` files: mapped into memory, written in chunks. Opening a file executes nothing."""

import mmap
import os
import sys
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from legnn.errors import first_line
from legnn.files import naming, new_digest
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
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # a damaged header is parsed as Python, which fails in many ways
        raise ValueError(first_line(error)) from None
    with path.open("rb") as file:
        content = _map(file, array.offset + array.nbytes)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    return np.ndarray(array.shape, array.dtype, content, array.offset, order=order)


def _map(file: BinaryIO, size: int) -> mmap.mmap:
    if sys.platform != "linux":
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    # Linux would reserve memory for the pages that may be written to, and refuse a file larger than the memory
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)  # the name is in Python from 3.13 on
    return mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE | no_reserve, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def write_array(path: Path, array: np.ndarray) -> str:
    """Writes a new file, in order of its rows, without a copy of more than one chunk; returns its digest."""
    rows, digest, header = max(CHUNK // max(array[:1].nbytes, 1), 1), new_digest(), BytesIO()
    description = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(header, description)
    bar = progress_bar(f"writing {path.name}", len(array), visible=array.nbytes >= LARGE)
    with naming(path), path.open("xb") as file, bar as done:
        file.write(header.getvalue())
        digest.update(header.getvalue())
        for begin in range(0, len(array), rows):
            chunk = np.ascontiguousarray(array[begin : begin + rows])
            file.write(chunk.data)
            digest.update(chunk.data)
            done(begin + rows)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()
