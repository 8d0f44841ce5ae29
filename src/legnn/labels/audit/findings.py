"""Findings of an audit: the result of each check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from legnn.errors import some_of

Verdict = Literal["passed", "warning", "failed", "not applicable"]
"""`failed`: a leak, or a score of other data; `warning`: a reader should know it, and it may be right."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check."""

    check: str
    method: str
    count: int
    """Number of nodes, columns or edges that were checked."""
    verdict: Verdict
    detail: str
    """The result in one sentence."""


class Check(NamedTuple):
    """The name of a check and its method in words."""

    name: str
    method: str

    def skip(self, reason: str) -> Finding:
        """Returns the finding of a check that does not apply."""
        return Finding(check=self.name, method=self.method, count=0, verdict="not applicable", detail=reason)

    def conclude(self, count: int, *, leaks: Sequence[str] = (), warnings: Sequence[str] = (), clean: str) -> Finding:
        """Returns the finding: failed if there are `leaks`, else a warning if there are `warnings`, else passed."""
        verdict: Verdict = "failed" if leaks else "warning" if warnings else "passed"
        detail = "; ".join(some_of(lines, 3) for lines in (leaks, warnings) if lines)
        return Finding(check=self.name, method=self.method, count=count, verdict=verdict, detail=detail or clean)
