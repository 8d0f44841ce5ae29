"""Runs: started, resumed, repeated over seeds, joined to ensembles, and predicted from."""

from legnn.runs.cross_fitting import CrossFit, CrossFitResult, is_cross_fit_folder
from legnn.runs.ensemble import Ensemble, is_ensemble_folder, open_run, write_ensemble
from legnn.runs.ensemble_card import EnsembleCard, Member
from legnn.runs.folder import RunFolder
from legnn.runs.representations import NodeRepresentations
from legnn.runs.result import MeanStd, Result, Summary, summarize
from legnn.runs.run import Run
from legnn.runs.seeds import is_seeds_folder, seed_folders
from legnn.runs.session import resume, train

__all__ = [
    "CrossFit",
    "CrossFitResult",
    "Ensemble",
    "EnsembleCard",
    "MeanStd",
    "Member",
    "NodeRepresentations",
    "Result",
    "Run",
    "RunFolder",
    "Summary",
    "is_cross_fit_folder",
    "is_ensemble_folder",
    "is_seeds_folder",
    "open_run",
    "resume",
    "seed_folders",
    "summarize",
    "train",
    "write_ensemble",
]
