"""A run is a folder. This module knows its files; nobody else does.

| file | what it holds |
|---|---|
| `settings.yaml` | every setting; `legnn train --config` repeats the run |
| `data.json` | what the data was: classes, features, and a fingerprint |
| `metrics.jsonl` | a line for each epoch |
| `checkpoint.safetensors` | while training: all that the rest of the run depends on |
| `text.safetensors` | where features come from a text column: how they were made |
| `weights.safetensors` | the best weights |
| `predictions.parquet` | id, prediction, confidence, split of every node |
| `result.json` | the scores; written last, so a folder that has it is finished |
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from legnn.config.settings import Settings
from legnn.data import GraphData
from legnn.errors import InputError
from legnn.files import remove_partial, write_text
from legnn.io import TextFeatures, read_predictions, write_predictions
from legnn.runs.tensors import load_tensors, save_tensors
from legnn.training import EpochLog


@dataclass(frozen=True, kw_only=True)
class DataCard:
    """What a run remembers of its data."""

    name: str
    fingerprint: str
    """Of features, labels, edges and splits: equal only for the same data."""
    nodes: int
    edges: int
    features: int
    classes: list[str | int | float]
    feature_names: list[str] | None
    label_edges: list[tuple[int, int, float]] | None = None
    """Target, source and weight of each label–label edge, where the data came with them."""
    types: list[str] | None = None
    """The node types, where there are several, in the order of the model's projections."""
    target_type: str | None = None
    """The one of them that has labels."""
    type_columns: list[list[str]] | None = None
    """The features of each of them."""
    computed_features: list[str] | None = None
    """Types whose features were computed from the graph, and exist for no other."""

    @property
    def label_adjacency(self) -> Tensor:
        """`[C, C]` the weights of the label–label edges, row = target."""
        among = torch.zeros(len(self.classes), len(self.classes))
        for target, source, weight in self.label_edges or []:
            among[target, source] = weight
        return among

    @classmethod
    def of(cls, data: GraphData) -> DataCard:
        """The card of loaded data."""
        types = data.node_types
        return cls(
            name=data.name,
            fingerprint=data.fingerprint(),
            nodes=data.num_nodes,
            edges=data.num_edges,
            features=data.num_features,
            classes=list(data.class_names),
            feature_names=data.feature_names,
            label_edges=_edges_of(data.label_adjacency),
            types=None if types is None else types.names,
            target_type=None if types is None else types.target,
            type_columns=None if types is None else types.columns,
            computed_features=data.provenance.computed_features or None,
        )


def _edges_of(among: Tensor | None) -> list[tuple[int, int, float]] | None:
    if among is None:
        return None
    return [(target, source, float(among[target, source])) for target, source in among.nonzero().tolist()]


class RunFolder:
    """Reads and writes one run folder, each file whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = path / "metrics.jsonl"
        self._checkpoint = path / "checkpoint.safetensors"
        self._weights = path / "weights.safetensors"
        self._result = path / "result.json"
        self._text = path / "text.safetensors"

    @classmethod
    def create(cls, path: Path, settings: Settings, data: GraphData) -> RunFolder:
        """Begin a run in a new or empty folder."""
        check_free(path)
        path.mkdir(parents=True, exist_ok=True)
        folder = cls(path)
        if data.text_features is not None:
            data.text_features.save(folder._text)
        write_text(path / "data.json", json.dumps(asdict(DataCard.of(data)), indent=1, ensure_ascii=False) + "\n")
        write_text(path / "settings.yaml", settings.to_yaml())
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """A folder that a run began in."""
        if not path.is_dir():
            raise InputError(f"there is no run folder {path}")
        seeds = sorted(child.name for child in path.glob("seed-*") if child.is_dir())
        if seeds:
            raise InputError(f"{path} holds a run for each seed; name one of them: {', '.join(seeds)}")
        missing = [name for name in ("settings.yaml", "data.json") if not (path / name).is_file()]
        if missing:
            raise InputError(f"{path} is not a run folder: it has no {missing[0]}")
        return cls(path)

    @property
    def settings(self) -> Settings:
        """The run's complete settings."""
        return Settings.from_yaml(self.path / "settings.yaml")

    @property
    def card(self) -> DataCard:
        """What the run was trained on."""
        path = self.path / "data.json"
        try:
            return DataCard(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"{path} is damaged ({error}); restore it from a copy") from None

    @property
    def text_features(self) -> TextFeatures | None:
        """How features were made from text, where they were."""
        return TextFeatures.load(self._text) if self._text.is_file() else None

    @property
    def is_finished(self) -> bool:
        """Whether the run came to its end."""
        return self._result.is_file()

    def check_data(self, data: GraphData, advice: str) -> None:
        """Refuse data that are not those of this run."""
        card, other = self.card, DataCard.of(data)
        if other.fingerprint != card.fingerprint:
            raise InputError(
                f"{self.path} is a run on other data: it was trained on {card.name!r} with {card.nodes} nodes and "
                f"{card.edges} edges, and {other.name!r} ({other.nodes} nodes, {other.edges} edges) is not the same; "
                f"{advice}"
            )

    def append(self, log: EpochLog) -> None:
        """Add an epoch's line."""
        with open(self._journal, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(log)) + "\n")

    def logs(self) -> list[dict[str, Any]]:
        """The lines of all epochs so far; a last line cut short by a crash is left out."""
        if not self._journal.is_file():
            return []
        lines = self._journal.read_text(encoding="utf-8").splitlines(keepends=True)
        try:
            return [json.loads(line) for line in lines if line.endswith("\n")]
        except ValueError as error:
            raise InputError(f"{self._journal} is damaged ({error}); restore it from a copy") from None

    def save_checkpoint(self, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        """Keep the state of the run."""
        save_tensors(self._checkpoint, tensors, meta)

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last state kept; None where none was kept yet."""
        if not self._checkpoint.is_file():
            return None
        tensors, meta = load_tensors(self._checkpoint)
        if "epoch" not in meta:
            raise InputError(f"{self._checkpoint} is not a checkpoint; restore it from a copy, or begin a new run")
        return tensors, meta

    def cut_back(self) -> None:
        """Take away what was written after the last state kept: half files, and the lines of later epochs."""
        remove_partial(self.path)
        checkpoint = self.load_checkpoint()
        if checkpoint is None:
            self._journal.unlink(missing_ok=True)
            return
        kept = [json.dumps(log) for log in self.logs() if log["epoch"] <= checkpoint[1]["epoch"]]
        write_text(self._journal, "".join(line + "\n" for line in kept))

    def finish(self, weights: dict[str, Tensor], predictions: pd.DataFrame, result: dict[str, Any]) -> None:
        """Write what the run came to, the result last, and drop the checkpoint it no longer needs."""
        save_tensors(self._weights, weights)
        write_predictions(self.path / "predictions.parquet", predictions)
        write_text(self._result, json.dumps(result, indent=1) + "\n")
        self._checkpoint.unlink(missing_ok=True)

    def weights(self) -> dict[str, Tensor]:
        """The best weights of a finished run."""
        if not self.is_finished:
            raise InputError(f"{self.path} is not finished; finish it with: legnn train --resume {self.path}")
        return load_tensors(self._weights)[0]

    def predictions(self) -> pd.DataFrame:
        """The predictions of a finished run: id, prediction, confidence, split."""
        return read_predictions(self.path / "predictions.parquet")

    def result(self) -> dict[str, Any]:
        """The scores of a finished run."""
        try:
            loaded: dict[str, Any] = json.loads(self._result.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {self._result}: {error}") from None
        return loaded


def check_free(path: Path) -> None:
    """Refuse a place where a new run would overwrite something."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} is already there; give another --out, or go on with it: legnn train --resume {path}")
