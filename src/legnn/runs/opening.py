"""Opens any folder of finished runs."""

from __future__ import annotations

from pathlib import Path

from legnn.errors import InputError
from legnn.runs.cross_fitting import CrossFit
from legnn.runs.ensemble import Ensemble, Seeds
from legnn.runs.folder import folder_kind
from legnn.runs.predictor import Predictor
from legnn.runs.run import Run

KINDS: dict[str, type[Run] | type[Ensemble]] = {
    "run": Run,
    "ensemble": Ensemble,
    "seeds": Seeds,
    "cross_fit": CrossFit,
}


def open_predictor(folder: str | Path) -> Predictor:
    """Returns the finished run, ensemble, runs of several seeds, or cross-fitted runs that a folder holds.

    >>> legnn.open("runs/first").predict()
    """
    path = Path(folder)
    kind = folder_kind(path)
    if kind == "search":
        raise InputError(f"{path} is a search that is not finished; continue it with `resume={path}`")
    return KINDS.get(kind or "run", Run).open(path)
