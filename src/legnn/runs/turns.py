"""Runs that take turns in this process, in one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

import torch

from legnn.training.sharing import Group, Member, Steps

Key = TypeVar("Key")
T = TypeVar("T")


class EndedRun(NamedTuple, Generic[Key, T]):
    """A run that has ended: with a value, or with an error."""

    key: Key
    value: T | None
    error: Exception | None = None


class Turns(Generic[Key, T]):
    """Runs by their keys, at most `most` at a time, each on a stream of its own.

    Args:
        device: where they are trained.
        most: the most runs at a time.
    """

    def __init__(self, device: torch.device, most: int) -> None:
        self._device, self._places = device, [*range(most, 0, -1)]
        self._members: dict[Key, Member[T]] = {}
        self.turn: Key | None = None
        """Whose turn it is, or was last."""

    def __len__(self) -> int:
        return len(self._members)

    @property
    def has_place(self) -> bool:
        """Whether another run can begin."""
        return bool(self._places)

    @property
    def some_begin(self) -> bool:
        """Whether a run has not come to its epochs yet."""
        return not all(member.has_begun for member in self._members.values())

    @property
    def all_left(self) -> bool:
        """Whether no run needs the device any more."""
        return all(member.has_left for member in self._members.values())

    def begin(self, key: Key, steps: Steps[T], group: Group | None = None) -> Member[T]:
        """Begins a run with the next turns."""
        member = self._members[key] = Member(self._device, self._places.pop(), steps, group)
        return member

    def take(self) -> Iterator[EndedRun[Key, T]]:
        """Gives each run a turn, and yields those that have ended with it."""
        # set again once, not after each of many short turns
        current = torch.cuda.current_stream(self._device) if self._device.type == "cuda" else None
        try:
            for key, member in [*self._members.items()]:
                ended = self._take(key, member)
                if ended is not None:
                    _set_stream(current)
                    yield ended
        finally:
            _set_stream(current)

    def _take(self, key: Key, member: Member[T]) -> EndedRun[Key, T] | None:
        self.turn = key
        try:
            member.advance()
            return None
        except StopIteration as end:
            ended = EndedRun[Key, T](key, end.value)
        except Exception as error:
            ended = EndedRun[Key, T](key, None, error)
        self._places.append(self._members.pop(key).place)
        return ended

    def close(self) -> None:
        """Ends the runs that are left where they are."""
        while self._members:
            with suppress(Exception):  # it is the error that counts
                self._members.popitem()[1].close()


def _set_stream(stream: torch.cuda.Stream | None) -> None:
    if stream is not None:
        torch.cuda.set_stream(stream)
