"""Files of the named data sets: on disk under `LEGNN_DATA`, or downloaded there."""

import http.client
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from legnn.errors import InputError, first_line
from legnn.files import atomic_write, data_folder
from legnn.io.progress import progress_bar

CHUNK = 1 << 20
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class RemoteFile:
    """A file of a named data set."""

    path: str
    """Under the data folder."""
    url: str | None
    """None if it is not published."""


Fetch = Callable[[RemoteFile], Path]
"""Returns the path of a file, downloaded or not."""


def on_disk(file: RemoteFile) -> Path:
    """Returns the path of the file; raises `InputError` if it is not on disk."""
    path = data_folder() / file.path
    if not path.is_file():
        raise InputError(f"{path} is not there")
    return path


def fetch(file: RemoteFile) -> Path:
    """Returns the path of the file, after downloading it if it is not on disk."""
    path = data_folder() / file.path
    if path.is_file():
        return path
    if file.url is None:
        raise InputError(f"{path} is missing and is published nowhere; put it there, or set LEGNN_DATA to its folder")
    try:
        _download(file.url, path)
    except (OSError, http.client.HTTPException) as error:
        raise InputError(
            f"{file.url} could not be downloaded ({first_line(error)}); put the file at {path} by hand, "
            f"or set LEGNN_DATA to a folder that holds {file.path}"
        ) from error
    return path


def _download(url: str, path: Path) -> None:
    request = Request(url, headers={"User-Agent": "legnn"})  # some hosts refuse the default of urllib
    with urlopen(request, timeout=TIMEOUT_SECONDS) as response, atomic_write(path) as file:
        length = response.headers.get("Content-Length")
        expected, received = int(length) if length else None, 0
        with progress_bar(f"downloading {path.name}", expected) as done:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                received += len(chunk)
                done(received)
        if expected is not None and received != expected:
            raise OSError(f"the connection ended after {received} of {expected} bytes")
