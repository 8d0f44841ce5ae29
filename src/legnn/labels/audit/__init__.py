"""`audit`: shows on a run that nobody saw their own answer, and looks for labels that leaked into the data."""

from legnn.labels.audit.all_checks import Audit, audit
from legnn.labels.audit.findings import Finding

__all__ = ["Audit", "Finding", "audit"]
