"""`audit`: shows on a run that no node saw its own label, and looks for labels that leaked into the data."""

from legnn.labels.audit.all_checks import Audit, audit
from legnn.labels.audit.findings import Finding

__all__ = ["Audit", "Finding", "audit"]
