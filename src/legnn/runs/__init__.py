"""Runs: started, resumed, repeated over seeds, and predicted from."""

from legnn.runs.folder import RunFolder
from legnn.runs.representations import NodeRepresentations
from legnn.runs.result import MeanStd, Result, Summary, summarize
from legnn.runs.run import Run
from legnn.runs.seeds import is_seeds_folder, resume_seeds, seed_folders, train_seeds
from legnn.runs.session import resume, train

__all__ = [
    "MeanStd",
    "NodeRepresentations",
    "Result",
    "Run",
    "RunFolder",
    "Summary",
    "is_seeds_folder",
    "resume",
    "resume_seeds",
    "seed_folders",
    "summarize",
    "train",
    "train_seeds",
]
