"""Pages to look at: what was trained, how well it predicts, and what single predictions rest on."""

from legnn.report.page import write_report

__all__ = ["write_report"]
