"""Parts of sentences that several errors share."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`" (did you mean 'cora'?)"` if a choice is close to `word`, else nothing."""
    by_lower = {choice.lower(): choice for choice in choices}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def plural(count: int, noun: str) -> str:
    """`"1 node"`, `"2 nodes"`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def first_line(error: BaseException) -> str:
    """The first line of what a library said, to put inside one sentence of ours."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
