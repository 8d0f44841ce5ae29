"""What reads runs and never trains."""

from legnn.analysis.curves import draw_curves
from legnn.analysis.ensemble_picture import draw_ensemble
from legnn.analysis.evaluation import Evaluation, evaluate_run
from legnn.analysis.report import Report, analyze

__all__ = ["Evaluation", "Report", "analyze", "draw_curves", "draw_ensemble", "evaluate_run"]
