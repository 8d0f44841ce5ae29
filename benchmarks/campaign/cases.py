"""A mutation as a case: what is done with it, and the verdict on what came of that."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from benchmarks.campaign.results import Nonsense
from legnn.errors import Interrupted, LegnnError

SAME, OTHER, REFUSED = "same", "other, said", "refused"
TRACEBACK, SIGNAL, HANG = "traceback", "signal", "hang"
SILENT, LOST, WORDS = "silent other result", "lost", "not one sentence"
VERDICTS = (REFUSED, SAME, OTHER, TRACEBACK, SIGNAL, HANG, SILENT, LOST, WORDS)
FAILURES = VERDICTS[3:]
UNSAFE = ("weights_only", "allow_pickle", "unsafe", "Traceback")
"""Words that no message may have."""
LONGEST = 2_000
LEFTOVER = re.compile(r"\.lock(-owner)?|.*\.partial|\.unfinished")


class RefusedByCommand(Exception):  # noqa: N818 (a verdict, not an error of a program)
    """The command line answered with exit code 2 and these words."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mutated input and what a user would do with it."""

    about: str
    """What was mutated, in a few words."""
    actions: Mapping[str, Callable[[], str]]
    """Each returns a digest of its result; they are carried out in order, each on what the ones before have left."""
    expected: Callable[[str], str]
    """The digest that an action has without the mutation, by its name."""
    guarded: Path | None = None
    """A folder in which nothing may change by a refusal, and nothing but a resumed run by a success."""
    outputs: list[Path] = field(default_factory=list)
    """What actions make: not there after a refusal."""
    may_differ: bool = False
    """Whether the mutation makes another graph or other settings, whose result is another."""


@dataclass(frozen=True)
class Verdict:
    """What came of a case, the worst of its actions."""

    verdict: str
    message: str


def judge(case: Case) -> Verdict:
    """Carries out the actions of a case until one fails; a refusal counts more than a result."""
    found: list[Verdict] = []
    for name, action in case.actions.items():
        one = _judge_action(case, name, action)
        found.append(Verdict(one.verdict, f"{name}: {one.message}" if one.message else name))
        if one.verdict in FAILURES:
            break
    order = (SAME, OTHER, REFUSED, *FAILURES)
    return max(found, key=lambda one: order.index(one.verdict))


def _judge_action(case: Case, name: str, action: Callable[[], str]) -> Verdict:
    before = snapshot(case.guarded)
    made = {path for path in case.outputs if path.exists()}
    try:
        result = action()
    except Interrupted:
        return _leftovers(case) or Verdict(OTHER, "stopped as asked")
    except (LegnnError, RefusedByCommand, MemoryError) as error:
        lost = _lost(case, before, made)
        return Verdict(LOST, f"{lost}, after: {error}") if lost else _words(error)
    except Nonsense as error:
        return Verdict(SILENT, str(error))
    except (Exception, SystemExit) as error:
        return Verdict(TRACEBACK, _last_frames(error))
    leftovers = _leftovers(case)
    if leftovers is not None:
        return leftovers
    if result == case.expected(name):
        return Verdict(SAME, "")
    return Verdict(OTHER, "") if case.may_differ else Verdict(SILENT, "the result is another")


def snapshot(folder: Path | None) -> dict[str, str]:
    """Returns what is in a folder, by relative paths."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")) if folder is not None and folder.is_dir() else ():
        kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
        content = blake2b(path.read_bytes()).hexdigest() if kind == "file" else ""
        found[str(path.relative_to(folder))] = f"{kind} {content}"
    return found


def _lost(case: Case, before: dict[str, str], made: set[Path]) -> str:
    """What a refusal has changed or left; empty if nothing."""
    after = snapshot(case.guarded)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        return f"{', '.join(changed[:3])} changed"
    left = [path.name for path in case.outputs if path.exists() and path not in made]
    return f"{left[0]} was left" if left else ""


def _leftovers(case: Case) -> Verdict | None:
    for folder in [*([] if case.guarded is None else [case.guarded]), *case.outputs]:
        for path in folder.rglob("*") if folder.is_dir() else ():
            if LEFTOVER.fullmatch(path.name):
                return Verdict(LOST, f"{path.name} was left")
    return None


def _words(error: BaseException) -> Verdict:
    message = str(error)
    if isinstance(error, LegnnError) and ("\n" in message.strip() or "\r" in message or len(message) > LONGEST):
        return Verdict(WORDS, message[:LONGEST])
    if not message.strip() and not isinstance(error, MemoryError):
        return Verdict(WORDS, "an empty message")
    if any(word in message for word in UNSAFE):
        return Verdict(WORDS, message[:LONGEST])
    return Verdict(REFUSED, message[:300])


def _last_frames(error: BaseException) -> str:
    """The error and the last lines of the library it passed through."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "/legnn/" in one.filename]
    places = [f"{Path(one.filename).name}:{one.lineno}" for one in frames[-3:]]
    return f"{type(error).__name__}: {str(error)[:200]} ({' > '.join(places)})"
