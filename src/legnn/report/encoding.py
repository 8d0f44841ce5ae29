"""What a page holds as text: compact arrays, and JSON that cannot end the script element it stands in."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

KINDS = {"f4": "<f4", "u4": "<u4", "u2": "<u2", "u1": "u1"}
"""The arrays that a page reads: little-endian, as every browser's machine has them."""


def pack(values: Any, kind: str) -> dict[str, Any]:
    """Returns an array as `{"kind", "base64"}`: a third of the text of its numbers, and read at once."""
    array = np.ascontiguousarray(np.asarray(values).ravel(), dtype=KINDS[kind])
    return {"kind": kind, "base64": base64.b64encode(array.tobytes()).decode("ascii")}


def pack_fraction(values: Any) -> dict[str, Any]:
    """Returns numbers of `[0, 1]` as an array of 65,536 steps, which are finer than any picture."""
    return pack(np.round(np.clip(np.asarray(values, dtype=np.float64), 0, 1) * 65535), "u2")


def to_script(content: Any) -> str:
    """Returns JSON that stands in an HTML script element, whatever names the data have."""
    text = json.dumps(plain(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # no tag and no comment can begin; the two separators end a line in some readers of scripts
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def plain(value: Any) -> Any:
    """Returns a value made of what JSON has: dataclasses as mappings, arrays as lists, no number as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)
