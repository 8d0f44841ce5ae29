"""Measurements of finished runs; nothing here trains."""

from legnn.analysis.evaluation import Evaluation, evaluate_run

__all__ = ["Evaluation", "evaluate_run"]
