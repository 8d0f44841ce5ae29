"""A study in a folder, that one process at a time opens and that survives a process that is killed.

The journal is JSON, a line for each event; no storage that reads pickles is used.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legnn.automl.study import REPORT_EVERY, STARTUP_TRIALS, WARMUP_EPOCHS, Study, Tuned
from legnn.errors import InputError, first_line
from legnn.locks import hold_folder

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

JOURNAL = "study.log"


@contextmanager
def open_study(folder: Path, tuned: Tuned, fingerprint: str) -> Iterator[Study]:
    """Context with the study of a folder, made if it is not there, that no other process opens meanwhile.

    Raises `InputError` if the study in the folder is another one.
    """
    _check_installed()
    with hold_folder(folder):
        # the journal's own lock, left by a process that was killed while it wrote: nobody else holds it now
        (folder / f"{JOURNAL}.lock").unlink(missing_ok=True)
        _mend(folder / JOURNAL)
        study, storage = _load(folder)
        _check_same(study, folder, {**tuned.identity(), "data": fingerprint})
        yield Study(study, storage, tuned)


def _load(folder: Path) -> tuple[optuna.Study, BaseStorage]:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(logging.WARNING)
    try:
        storage = JournalStorage(JournalFileBackend(str(folder / JOURNAL)))
        study = optuna.create_study(
            storage=storage,
            study_name="legnn",
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.MedianPruner(
                n_startup_trials=STARTUP_TRIALS,
                n_warmup_steps=WARMUP_EPOCHS,
                interval_steps=REPORT_EVERY,
                n_min_trials=STARTUP_TRIALS - 1,
            ),
        )
        return study, storage
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError) as error:
        raise InputError(
            f"{folder / JOURNAL} is damaged ({first_line(error)}); restore it from a copy, or remove it"
        ) from None


def _check_installed() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise InputError("tuning needs the package optuna; install it with: pip install legnn[tune]") from None


def _check_same(study: optuna.Study, folder: Path, identity: dict[str, Any]) -> None:
    kept = study.user_attrs.get("identity")
    if kept is None:
        study.set_user_attr("identity", identity)
        return
    words = {"space": "another space", "seed": "another seed", "preset": "another preset", "given": "other settings"}
    if not isinstance(kept, dict):
        raise InputError(f"{folder / JOURNAL} is damaged; restore it from a copy, or remove it")
    for name, value in identity.items():
        if kept.get(name) != value:
            what = words.get(name, "other data")
            raise InputError(f"{folder} holds a search with {what}; give another folder as `out`")


def _mend(journal: Path) -> None:
    """Removes the last line of a journal if a process was killed while it wrote it."""
    if journal.is_file() and (content := journal.read_bytes()) and not content.endswith(b"\n"):
        journal.write_bytes(content[: content.rfind(b"\n") + 1])
