"""What reads runs and never trains."""

from legnn.analysis.curves import draw_curves

__all__ = ["draw_curves"]
