"""All checks of an audit, in the order in which they are told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from legnn.datasets import Source
from legnn.errors import InputError
from legnn.labels.audit.columns import check_degrees, check_features, check_ids_tell
from legnn.labels.audit.duplicates import check_duplicates
from legnn.labels.audit.edges import check_edges
from legnn.labels.audit.encodings import check_encodings
from legnn.labels.audit.findings import Finding
from legnn.labels.audit.flips import check_flips
from legnn.labels.audit.priors import check_priors
from legnn.labels.audit.retraining import check_settings, check_training
from legnn.labels.audit.splits import check_class_shares, check_data, check_ids, check_predictions, check_splits
from legnn.labels.audit.subject import open_subject
from legnn.labels.audit.texts import check_texts
from legnn.runs import Ensemble, Run, open_run

FLIPS = 200


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What was tried on a run, and found."""

    data: str
    """The name of the graph."""
    findings: list[Finding]

    @property
    def leaks(self) -> list[Finding]:
        """The findings that failed."""
        return [one for one in self.findings if one.verdict == "failed"]

    @property
    def warnings(self) -> list[Finding]:
        """What a reader should know, and may be right."""
        return [one for one in self.findings if one.verdict == "warning"]


def audit(
    run: Run | Ensemble | str | Path,
    data: Source | None = None,
    *,
    flips: int = FLIPS,
    retrain: bool = False,
    device: str = "auto",
) -> Audit:
    """Tries to find out whether a node of a run saw its own answer, or the data hold it, and returns what was tried.

    >>> legnn.audit("runs/first").leaks
    []

    Args:
        run: a finished run or an ensemble, or its folder.
        data: the graph again, where the run was trained on data in memory, or another graph; see `Run.predict`.
        flips: how many training nodes get another label, to see whether their own predictions move.
        retrain: whether a few epochs are trained again with test labels flipped, and the weights compared.
        device: `auto`, `cpu` or `cuda`.
    """
    if flips < 1:
        raise InputError(f"flips must be 1 or more, got {flips}")
    subject = open_subject(open_run(run) if isinstance(run, str | Path) else run, data, device)
    is_given = data is not None
    findings = [
        check_data(subject, is_given=is_given),
        check_predictions(subject, is_given=is_given),
        *check_flips(subject, flips),
        check_settings(subject),
        *(check_training(subject) if retrain else []),
        check_splits(subject),
        check_ids(subject),
        check_class_shares(subject),
        check_duplicates(subject),
        *check_features(subject),
        check_encodings(subject),
        check_degrees(subject),
        *check_edges(subject),
        check_priors(subject),
        check_texts(subject),
        check_ids_tell(subject),
    ]
    return Audit(data=subject.graph.name, findings=findings)
