"""A run is a folder. This module knows the names of its files, and tells the kinds of folders.

| file | what it holds |
|---|---|
| `settings.yaml` | every setting; `legnn train --config` repeats the run |
| `data.json` | the data: classes, features, and a fingerprint |
| `digests.json` | digests of settings, data, columns, weights and, of a finished run, the log |
| `metrics.jsonl` | a line for each epoch |
| `checkpoint.safetensors` | while training: the state that the rest of the run depends on |
| `columns.safetensors` | how columns of tables became features |
| `weights.safetensors` | the best weights |
| `predictions.parquet` | id, prediction, confidence, split of every node |
| `result.json` | the scores; written last, so a folder that has it is finished |
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from legnn.config import ResolvedSettings
from legnn.data.raw_graph import TableTransform
from legnn.errors import InputError, first_line
from legnn.files import atomic_write, digest_bytes, is_partial, naming, refuse_links, remove_partial, write_text
from legnn.io import PredictionTable, read_predictions, write_predictions
from legnn.io.prepared_card import CARD
from legnn.lazy import pandas as pd
from legnn.locks import clear_folder, contents
from legnn.runs.data_card import DataCard
from legnn.runs.digests import DIGESTS, check_digest, has_digest, write_digests
from legnn.runs.result import Result
from legnn.runs.tensors import load_tensors, save_tensors
from legnn.training import EpochLog
from legnn.training.loop import EarlyStopping
from legnn.typed_json import as_kind, read_json, to_json, write_json

if TYPE_CHECKING:
    from legnn.io import TableFeatures

SETTINGS, DATA, COLUMNS = "settings.yaml", "data.json", "columns.safetensors"
LOG, CHECKPOINT = "metrics.jsonl", "checkpoint.safetensors"
WEIGHTS, PREDICTIONS, RESULT = "weights.safetensors", "predictions.parquet", "result.json"
"""Files of a run."""

SEEDS, CROSS_FIT, SWEEP, SEARCH = "seeds.json", "cross_fit.json", "sweep.json", "search.json"
ENSEMBLE, SUMMARY, LEADERBOARD = "ensemble.json", "summary.json", "leaderboard.csv"
"""Files of folders with several runs. An ensemble has predictions and a result as well."""

FolderKind = Literal["run", "ensemble", "seeds", "cross_fit", "search", "sweep", "prepared"]

_KIND_FILES: dict[str, FolderKind] = {
    ENSEMBLE: "ensemble",
    SEARCH: "search",
    SEEDS: "seeds",
    CROSS_FIT: "cross_fit",
    SETTINGS: "run",
    SWEEP: "sweep",
    CARD: "prepared",
}
"""The file by which a folder of each kind is recognized; the first one there counts."""


def folder_kind(path: Path) -> FolderKind | None:
    """Returns the kind of a folder that legnn wrote, finished or not; None for another folder."""
    return next((kind for name, kind in _KIND_FILES.items() if (path / name).is_file()), None)


def seed_name(seed: int) -> str:
    """Returns the name of a seed's run in the folder of all of them."""
    return f"seed-{seed}"


def fold_name(fold: int) -> str:
    """Returns the name of a fold's run in the folder of all of them."""
    return f"fold-{fold}"


@dataclass(frozen=True, kw_only=True)
class CheckpointMeta:
    """The numbers of a checkpoint: those of `Trainer.state`, and the seconds of training."""

    epoch: int
    steps: int
    stopper: EarlyStopping
    seconds: float
    run: str
    """Digest of the settings and data of the run that it belongs to."""
    log: str
    """Digest of the lines of its epochs in `metrics.jsonl`."""


class RunFolder:
    """Reads and writes one run folder, each file atomically."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._metrics = path / LOG
        self._checkpoint = path / CHECKPOINT
        self._weights = path / WEIGHTS
        self._predictions = path / PREDICTIONS
        self._result = path / RESULT
        self._columns = path / COLUMNS

    def create(self, settings: ResolvedSettings, card: DataCard, table_features: TableTransform | None) -> None:
        """Write the files a run starts with to a new or empty folder."""
        check_free(self.path)
        clear_folder(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        if table_features is not None:
            table_features.save(self._columns)
        write_json(self.path / DATA, card)
        text = settings.to_yaml()
        files = [self.path / DATA, *([] if table_features is None else [self._columns])]
        digests = {path.name: digest_bytes(path.read_bytes()) for path in files}
        write_digests(self.path, {SETTINGS: settings.digest, **digests})
        # last: a folder without settings is one whose creation was cut short
        write_text(self.path / SETTINGS, text)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Returns the folder of a run that was started; raises `InputError` for any other."""
        if not path.is_dir():
            raise InputError(f"there is no run folder {path}")
        refuse_links(path)
        seeds = sorted(child.name for child in path.glob("seed-*") if child.is_dir())
        if seeds:
            raise InputError(f"{path} holds a run for each seed; name one of them: {', '.join(seeds)}")
        folds = sorted(child.name for child in path.glob("fold-*") if child.is_dir())
        if folds:
            raise InputError(f"{path} holds a run for each fold; name one of them: {', '.join(folds)}")
        if (path / ENSEMBLE).is_file():
            raise InputError(f"{path} is an ensemble of runs; name one of the runs that its {ENSEMBLE} lists")
        if is_half_begun(path):
            raise InputError(
                f"{path} is a run whose folder was only half made; train again with `out={path}`, which makes it anew"
            )
        missing = [name for name in (SETTINGS, DATA) if not (path / name).is_file()]
        if missing:
            raise InputError(f"{path} is not a run folder: it has no {missing[0]}")
        return cls(path)

    @property
    def settings(self) -> ResolvedSettings:
        """The run's settings."""
        settings = ResolvedSettings.from_yaml(self.path / SETTINGS)
        check_digest(self.path / SETTINGS, settings.digest)
        return settings

    @property
    def card(self) -> DataCard:
        """The data the run is trained on."""
        card = read_json(self.path / DATA, DataCard)
        check_digest(self.path / DATA)
        return card

    @property
    def table_features(self) -> TableFeatures | None:
        """Rules by which columns of tables became features, for a run on tables."""
        from legnn.io import TableFeatures

        features = TableFeatures.load(self._columns) if self._columns.is_file() else None
        check_digest(self._columns, is_listed=features is not None)
        return features

    @property
    def is_begun(self) -> bool:
        """Whether the run was started, finished or not."""
        return (self.path / SETTINGS).is_file()

    @property
    def is_finished(self) -> bool:
        """Whether the run came to its end."""
        return self._result.is_file()

    def remove_untrained(self) -> None:
        """Removes the files a run starts with if no epoch followed: there is nothing to continue from."""
        if not self._metrics.exists():
            clear_folder(self.path)

    def append(self, logs: Iterable[EpochLog]) -> None:
        """Add the lines of epochs to the metrics."""
        with naming(self._metrics), open(self._metrics, "a", encoding="utf-8") as file:
            # an EpochLog holds numbers alone: `asdict`, which copies, would take longer than writing them; all at once,
            # since each call makes a new encoder
            text = json.dumps([vars(log) for log in logs])[1:-1].replace("}, {", "}\n{")
            file.write(text + "\n" if text else "")

    def logs(self) -> list[dict[str, Any]]:
        """Returns the lines of all epochs so far, without a last line that a crash cut short."""
        content = self._metrics.read_bytes() if self._metrics.is_file() else b""
        try:
            lines = [json.loads(line) for line in content[: content.rfind(b"\n") + 1].split(b"\n") if line]
            logs = [asdict(as_kind(line, EpochLog, "a line")) for line in lines]
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self._metrics} is damaged ({first_line(error)}); restore it from a copy") from None
        if self.is_finished:
            check_digest(self._metrics)
        return logs

    def save_checkpoint(self, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        """Write the state of the run, which belongs to the lines of its metrics so far."""
        with naming(self._metrics), open(self._metrics, "rb+") as file:
            # its lines must be on disk before the checkpoint that counts on them
            os.fsync(file.fileno())
            log = digest_bytes(file.read())
        save_tensors(self._checkpoint, tensors, {**meta, "run": self._identity(), "log": log})

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Returns the last state written; None before the first."""
        if not self._checkpoint.exists():
            return None
        tensors, meta = load_tensors(self._checkpoint)
        try:
            as_kind(meta, CheckpointMeta, "the file")
        except ValueError as error:
            raise InputError(
                f"{self._checkpoint} is not a checkpoint ({first_line(error)}); restore it from a copy, or start a "
                "new run"
            ) from None
        if meta["run"] != self._identity():
            raise InputError(
                f"the checkpoint in {self.path} does not fit the settings.yaml and data.json beside it; restore them "
                "from a copy"
            )
        return tensors, meta

    def _identity(self) -> str:
        """A digest of the files a run starts with, which tells it from others."""
        files = (self.path / SETTINGS, self.path / DATA)
        return digest_bytes(b"".join(path.read_bytes() for path in files))

    def rollback_to_checkpoint(self) -> None:
        """Remove what was written after the last checkpoint: partial files, and the lines of later epochs."""
        was_killed = any(is_partial(path) for path in self.path.glob(f".{self._result.name}.*"))
        remove_partial(self.path)
        checkpoint = self.load_checkpoint()
        if checkpoint is None and self._weights.is_file() and has_digest(self._weights) and not was_killed:
            raise InputError(
                f"{self.path} has weights and neither a result.json nor a checkpoint, as if it had been finished; "
                "restore result.json from a copy, or remove the folder and train anew"
            )
        if checkpoint is None:
            # younger than its first checkpoint; the weights are there if it was killed while it was finished
            for path in (self._weights, self._predictions, self._metrics):
                path.unlink(missing_ok=True)
            return
        lines = [json.dumps(log) for log in self.logs() if log["epoch"] <= checkpoint[1]["epoch"]]
        text = "".join(line + "\n" for line in lines)
        if digest_bytes(text.encode()) != checkpoint[1]["log"]:
            raise InputError(
                f"{self._metrics} does not hold the epochs of the checkpoint beside it; restore both from a copy"
            )
        write_text(self._metrics, text)

    def finish(self, weights: dict[str, Tensor], predictions: PredictionTable, result: Result) -> None:
        """Write what the run came to, the result last, and remove the checkpoint."""
        save_tensors(self._weights, weights, {"settings": self.settings.digest})
        write_predictions(self._predictions, predictions)
        with atomic_write(self._result) as file:
            file.write(to_json(result).encode())
            # meanwhile the result is a partial file, which tells that the run was killed here
            if (self.path / DIGESTS).is_file():
                files = (self._weights, self._metrics)
                write_digests(self.path, {path.name: digest_bytes(path.read_bytes()) for path in files})
        self._checkpoint.unlink(missing_ok=True)

    def weights(self) -> dict[str, Tensor]:
        """Returns the best weights of a finished run."""
        if not self.is_finished:
            raise InputError(f"{self.path} is not finished; continue it with `resume={self.path}`")
        weights, meta = load_tensors(self._weights)
        check_digest(self._weights)
        if meta.get("settings") != self.settings.digest:
            raise InputError(f"{self._weights} belongs to other settings than {SETTINGS}; restore both from a copy")
        return weights

    def predictions(self) -> pd.DataFrame:
        """Returns the predictions of a finished run: id, prediction, confidence, split."""
        return read_predictions(self._predictions)

    def result(self) -> Result:
        """Returns the scores of a finished run."""
        return read_json(self._result, Result)


def check_free(path: Path) -> None:
    """Raises `InputError` for a place where a new run would overwrite something."""
    if not path.exists() or (path.is_dir() and (not contents(path) or is_half_begun(path))):
        return
    # continuing would change nothing
    if any((path / name).is_file() for name in (RESULT, SUMMARY)):
        raise InputError(f"{path} holds a finished run; give another folder as `out`, or remove this one first")
    if any((path / name).is_file() for name in (SETTINGS, SWEEP)):
        raise InputError(f"{path} holds a run; give another folder as `out`, or continue it with `resume={path}`")
    raise InputError(f"{path} is already there; give another folder as `out`")


def is_half_begun(path: Path) -> bool:
    """Whether a folder holds only what a process had written that was killed before a run could begin."""
    names = [] if (path / SETTINGS).exists() else contents(path)
    if not names or any(name not in (DATA, COLUMNS, DIGESTS) for name in names if not _partial(name)):
        return False
    if DATA not in names:
        return True
    try:
        # a file of that name may be the user's own
        read_json(path / DATA, DataCard)
    except InputError:
        return False
    return True


def _partial(name: str) -> bool:
    return is_partial(Path(name))
