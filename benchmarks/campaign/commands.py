"""The command line, called in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from benchmarks.campaign.cases import RefusedByCommand
from benchmarks.campaign.results import digest
from legnn.cli import main
from legnn.errors import Interrupted


def command(arguments: Sequence[str | Path], place: Path) -> str:
    """Runs `legnn` in the folder `place`, and returns a digest of the file that was asked for by `--out`.

    Raises `RefusedByCommand` for exit code 2 and `Interrupted` for 130; whatever else it raises is a fault.
    """
    before, words = sys.argv, io.StringIO()
    texts = [str(one) for one in arguments]
    sys.argv = ["legnn", *texts]
    try:
        with chdir(place), redirect_stdout(io.StringIO()), redirect_stderr(words):
            main()
        code: object = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    if code == 130:
        raise Interrupted(None, None)
    if code == 2:
        raise RefusedByCommand(words.getvalue())
    if code != 0:
        raise SystemExit(f"exit code {code}: {words.getvalue()[-300:]}")
    out = Path(texts[texts.index("--out") + 1])
    return digest(out.read_bytes()) if out.is_file() else ""
