"""Runs: a folder for each, begun, resumed, repeated over seeds, and predicted from."""

from legnn.runs.folder import DataCard, RunFolder
from legnn.runs.prediction import predict
from legnn.runs.seeds import is_seeds_folder, resume_seeds, summarize, train_seeds
from legnn.runs.session import Run, restore, resume, train

__all__ = [
    "DataCard",
    "Run",
    "RunFolder",
    "is_seeds_folder",
    "predict",
    "restore",
    "resume",
    "resume_seeds",
    "summarize",
    "train",
    "train_seeds",
]
