"""The paper's experiments: every table and figure as data and one function."""

from legnn.experiments.catalog import EXPERIMENTS
from legnn.experiments.experiment import Experiment, Report, Request, Variant
from legnn.experiments.plan import Plan

__all__ = ["EXPERIMENTS", "Experiment", "Plan", "Report", "Request", "Variant"]
