"""Runs: started, resumed, repeated over seeds, joined to ensembles, and predicted from."""

from typing import TYPE_CHECKING

from legnn.lazy import lazy_names

if TYPE_CHECKING:
    from legnn.runs.cross_fitting import CrossFit, CrossFitResult
    from legnn.runs.ensemble import Ensemble, EnsembleCard, Member, Seeds, write_ensemble
    from legnn.runs.evaluation import Evaluation
    from legnn.runs.folder import RunFolder
    from legnn.runs.opening import open_predictor
    from legnn.runs.predictor import Predictor
    from legnn.runs.representations import NodeRepresentations
    from legnn.runs.result import MeanStd, Result, Summary, summarize
    from legnn.runs.run import Run
    from legnn.runs.seeds import seed_folders
    from legnn.runs.session import resume_run, train

_NAMES = {
    "cross_fitting": "CrossFit CrossFitResult",
    "ensemble": "Ensemble EnsembleCard Member Seeds write_ensemble",
    "evaluation": "Evaluation",
    "folder": "RunFolder",
    "opening": "open_predictor",
    "predictor": "Predictor",
    "representations": "NodeRepresentations",
    "result": "MeanStd Result Summary summarize",
    "run": "Run",
    "seeds": "seed_folders",
    "session": "resume_run train",
}
__getattr__ = lazy_names(__name__, _NAMES)

__all__ = [
    "CrossFit",
    "CrossFitResult",
    "Ensemble",
    "EnsembleCard",
    "Evaluation",
    "MeanStd",
    "Member",
    "NodeRepresentations",
    "Predictor",
    "Result",
    "Run",
    "RunFolder",
    "Seeds",
    "Summary",
    "open_predictor",
    "resume_run",
    "seed_folders",
    "summarize",
    "train",
    "write_ensemble",
]
