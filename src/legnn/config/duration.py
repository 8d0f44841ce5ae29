"""Times as users write them."""

from __future__ import annotations

import math
import re

from legnn.errors import InputError

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_duration(text: str, name: str = "budget") -> float:
    """Returns the seconds of a time such as `90`, `90s`, `10m` or `1.5h`. Raises `InputError` for other words."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip(), re.ASCII)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0 < seconds < math.inf:
        raise InputError(f"{name} must be a time above 0 such as 90s, 10m or 1.5h, got {text!r}")
    return seconds
