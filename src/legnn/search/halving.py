"""Asynchronous successive halving: which candidates are not worth their next epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

RUNGS = (20, 60, 180)
"""Epochs after which a candidate is compared with the others."""
LEAST_FINISHED = 3
"""Fewer finished candidates say too little of what can be gained after an epoch."""

Curve = Sequence[float]
"""The best validation accuracy so far, after each epoch."""


def is_hopeless(curve: Curve, finished: Mapping[str, Curve], others: Sequence[Curve], num_val: int) -> bool:
    """Whether a candidate should be paused at the last rung that it has reached.

    It goes on if it is among the better half of all that have reached the rung. It also goes on if it could still come
    within a standard error of the leader by gaining as much after the rung as any finished candidate did.

    Args:
        curve: of the candidate.
        finished: of those that came to their end.
        others: of all others that are training or paused.
        num_val: validation nodes.
    """
    reached = [rung for rung in RUNGS if rung <= len(curve)]
    if not reached or sum(map(bool, finished.values())) < LEAST_FINISHED:
        return False
    rung = reached[-1]
    value = curve[rung - 1]
    is_better = [curve[rung - 1] > value for curve in (*finished.values(), *others) if len(curve) >= rung]
    is_behind = 2 * sum(is_better) > len(is_better)
    leader = max(curve[-1] for curve in finished.values() if curve)
    gains = [curve[-1] - curve[rung - 1] for curve in finished.values() if len(curve) >= rung]
    error = math.sqrt(max(leader * (1 - leader), 0.0) / max(num_val, 1))
    return is_behind and bool(gains) and value + max(gains) + error < leader
