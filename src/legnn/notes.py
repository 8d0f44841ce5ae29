"""Notes: sentences that a reader of scores should know, each with a code by which programs tell it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """A sentence on data or results, such as `Note("split-drawn", "cora comes without a split: …")`."""

    code: str
    text: str

    def __str__(self) -> str:
        return self.text
