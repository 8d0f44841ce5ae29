"""What a check tried and found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from legnn.errors import some_of

Verdict = Literal["passed", "warning", "failed", "not applicable"]
"""`failed`: a leak, or a score that is not of these data; `warning`: what a reader should know, and may be right."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check tried, on how many, and what came of it."""

    check: str
    tried: str
    count: int
    """On how many nodes, columns or edges it was tried."""
    verdict: Verdict
    detail: str
    """What was found, in a sentence."""


def not_applicable(check: str, tried: str, why: str) -> Finding:
    """Returns the finding of a check that had nothing to look at."""
    return Finding(check=check, tried=tried, count=0, verdict="not applicable", detail=why)


def conclude(
    check: str, tried: str, count: int, *, leaks: Sequence[str], doubts: Sequence[str] = (), clean: str
) -> Finding:
    """Returns the finding: failed if there are `leaks`, a warning if there are `doubts`, else passed as `clean`."""
    verdict: Verdict = "failed" if leaks else "warning" if doubts else "passed"
    said = [some_of(part, 3) for part in (leaks, doubts) if part]
    return Finding(check=check, tried=tried, count=count, verdict=verdict, detail="; ".join(said) or clean)
