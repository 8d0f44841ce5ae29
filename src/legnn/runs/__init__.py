"""Runs: started, resumed, repeated over seeds, joined to ensembles, and predicted from."""

from legnn.runs.cross_fitting import CrossFit, CrossFitResult, cross_fit, is_cross_fit_folder, resume_cross_fit
from legnn.runs.ensemble import Ensemble, is_ensemble_folder, open_run, write_ensemble
from legnn.runs.ensemble_card import EnsembleCard, Member
from legnn.runs.folder import RunFolder
from legnn.runs.representations import NodeRepresentations
from legnn.runs.result import MeanStd, Result, Summary, summarize
from legnn.runs.run import Run
from legnn.runs.seeds import is_seeds_folder, resume_seeds, seed_folders, train_seeds
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
    "cross_fit",
    "is_cross_fit_folder",
    "is_ensemble_folder",
    "is_seeds_folder",
    "open_run",
    "resume",
    "resume_cross_fit",
    "resume_seeds",
    "seed_folders",
    "summarize",
    "train",
    "train_seeds",
    "write_ensemble",
]
