"""All checks of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from legnn.datasets import Source
from legnn.errors import InputError
from legnn.labels.audit.columns import check_degrees, check_features
from legnn.labels.audit.duplicates import check_duplicates
from legnn.labels.audit.edges import check_homophily, check_neighbors
from legnn.labels.audit.findings import Finding
from legnn.labels.audit.flips import check_flips, check_settings
from legnn.labels.audit.retraining import check_training
from legnn.labels.audit.splits import check_class_shares, check_data, check_ids, check_predictions, check_splits
from legnn.labels.audit.subject import open_subject
from legnn.runs import Predictor, open_predictor

FLIPS = 200
CHECKS = (
    check_settings,
    check_splits,
    check_ids,
    check_class_shares,
    check_duplicates,
    check_features,
    check_degrees,
    check_homophily,
    check_neighbors,
)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The findings of all checks of a run."""

    data: str
    """The name of the graph."""
    findings: list[Finding]

    @property
    def leaks(self) -> list[Finding]:
        """The findings that failed."""
        return [finding for finding in self.findings if finding.verdict == "failed"]

    @property
    def warnings(self) -> list[Finding]:
        """The findings that a reader should know, and that may be right."""
        return [finding for finding in self.findings if finding.verdict == "warning"]


def audit(
    run: Predictor | str | Path,
    data: Source | None = None,
    *,
    flips: int = FLIPS,
    retrain: bool = False,
    device: str = "auto",
) -> Audit:
    """Checks whether a node of a run saw its own label, or the data contain it.

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
    subject = open_subject(open_predictor(run) if isinstance(run, str | Path) else run, data, device)
    is_other_data = data is not None
    findings = [
        check_data(subject, is_other_data=is_other_data),
        check_predictions(subject, is_other_data=is_other_data),
        *check_flips(subject, flips),
        *(check_training(subject) if retrain else []),
        *(check(subject) for check in CHECKS),
    ]
    return Audit(data=subject.graph.name, findings=findings)
