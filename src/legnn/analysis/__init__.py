"""What reads runs and never trains."""

from legnn.analysis.curves import draw_curves
from legnn.analysis.report import Report, analyze

__all__ = ["Report", "analyze", "draw_curves"]
