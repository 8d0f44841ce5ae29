"""Sweeps: lists of runs in a folder, each trained once, several at a time, and resumed after an interruption."""

from legnn.sweep.executors import Executor, LocalExecutor, SerialExecutor, executor_for
from legnn.sweep.plan import Trial
from legnn.sweep.progress import SweepProgress
from legnn.sweep.sweep import Sweep
from legnn.sweep.tasks import Event, Outcome, Task

__all__ = [
    "Event",
    "Executor",
    "LocalExecutor",
    "Outcome",
    "SerialExecutor",
    "Sweep",
    "SweepProgress",
    "Task",
    "Trial",
    "executor_for",
]
