"""Candidate folders as training leaves them, without training."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.named import named

from legnn.config import GraphFacts, Settings
from legnn.files import write_text
from legnn.runs.result import Result
from legnn.runs.tensors import save_tensors
from legnn.sweep.held_out import HELD_OUT
from legnn.training import EpochLog
from legnn.typed_json import write_json

FACTS = GraphFacts(num_train=1000, num_classes=3, counts_features=False, has_label_edges=False)
ARRAYS = {name: np.full((4, 3), 1 / 3, dtype=np.float32) for name in ("val", "test")}


def begin(folder: Path, values: Mapping[str, Any], curve: Sequence[float] = ()) -> None:
    """As a run that was cut short."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = Settings(preset="simple", values=named(**values)).resolve(FACTS)
    write_text(folder / "settings.yaml", settings.to_yaml())
    names = [field.name for field in fields(EpochLog)]
    logs = [dict.fromkeys(names, 1) | {"epoch": k + 1, "val": {"accuracy": value}} for k, value in enumerate(curve)]
    write_text(folder / "metrics.jsonl", "".join(json.dumps(log) + "\n" for log in logs))


def finish(
    folder: Path,
    values: Mapping[str, Any],
    curve: Sequence[float] = (0.5,),
    arrays: Mapping[str, np.ndarray] = ARRAYS,
) -> None:
    """As a candidate that came to its end."""
    begin(folder, values, curve)
    scores = {"accuracy": curve[-1]}
    result = Result(
        val=scores, test=scores, train_masked=None, best_epoch=1, epochs=len(curve),
        seconds=1.0, parameters=10, seed=0, device="cpu", precision="fp32", versions={}, notes=[],
    )  # fmt: skip
    write_json(folder / "result.json", result)
    save_tensors(folder / HELD_OUT, {name: torch.from_numpy(array) for name, array in arrays.items()})
