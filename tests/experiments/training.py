"""Trains planned runs in this process."""

from pathlib import Path

from legnn.experiments.planned import PlannedRun
from legnn.sweep import Outcome, SerialExecutor, Sweep


def train_planned(run: PlannedRun, root: Path) -> Outcome:
    return next(Sweep(root, [run.trial]).run(SerialExecutor()))
