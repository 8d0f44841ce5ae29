"""Times as users write and read them."""

from __future__ import annotations

import math
import re

from legnn.errors import InputError

PLAIN_SECONDS = 10.0
"""Least seconds between two lines of progress where there is no terminal."""

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_duration(text: str, name: str = "budget") -> float:
    """Returns the seconds of a time such as `90`, `90s`, `10m` or `1.5h`. Raises `InputError` for other words."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip(), re.ASCII)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds < math.inf:
        raise InputError(f"{name} must be a time above 0 such as 90s, 10m or 1.5h, got {text!r}")
    return seconds


def duration(seconds: float) -> str:
    """Returns `"about 12 s"`, `"about 5 min"` or `"about 2.5 h"`."""
    if seconds < 90:
        return f"about {max(round(seconds), 1)} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
