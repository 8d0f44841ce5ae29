"""Declares a setting once, as a dataclass field that also holds its help, range and choices.

The sections are plain dataclasses and not pydantic models: a supported installation has no pydantic (only recent
releases of Typer bring it), it takes 40 ms to import, and its messages span several lines where ours are one sentence.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

from legnn.errors import InputError, did_you_mean, short_repr

T = TypeVar("T")

_BOUNDS = {
    "least": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "most": ("at most", operator.le),
    "below": ("below", operator.lt),
}

LARGEST: dict[type, float] = {int: 2.0**63, float: 3.4e38}
"""No number is as large: it would not fit into tensors."""


def setting(default: T, help: str, **about: Any) -> T:
    """Declares a field of a `Section`, whose type is the annotation; `about` is described in `Setting`."""
    return field(default=default, metadata={"help": help, **about})


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is known of one setting."""

    name: str
    section: str
    default: Any
    """Value in a section that is built directly."""
    help: str
    number: type[int] | type[float] | None
    """Type of the number that it may be."""
    is_switch: bool
    choices: Sequence[str] = ()
    """Words that it may be: those of a `Literal` annotation, or of a registry that may grow."""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    expects: str = "a word"
    """What a text is, for the message about another value. Only a text whose default is empty may be empty."""
    chosen: str | None = None
    """How the recommended preset chooses the value, shown in the place of the default."""
    flag: str | None = None
    """Name on the command line, where it is not the name of the field."""

    @property
    def shown_default(self) -> str:
        """The default as help and guide show it."""
        default = ("no", "yes")[self.default] if self.is_switch else self.default
        return self.chosen or (f"{default:g}" if isinstance(default, float) else str(default))

    @property
    def bounds(self) -> str:
        """The range in words, such as "above 0 and at most 1"; empty where there is none."""
        given = ((words, getattr(self, name)) for name, (words, _) in _BOUNDS.items())
        return " and ".join(f"{words} {bound:g}" for words, bound in given if bound is not None)

    def parse(self, text: str) -> Any:
        """Returns a number if `text` is one and the setting may be one, else the text, for `check` to refuse."""
        try:
            return text if self.number is None else self.number(text)
        except ValueError:
            return text

    def check(self, value: object, name: str = "") -> Any:
        """Returns `value` in the type of the setting. Raises `InputError` if it is of another kind or out of range."""
        if self.is_switch and isinstance(value, bool):
            return value
        number = self._as_number(value)
        if number is not None and self._is_in_range(number):
            return number
        if isinstance(value, str) and (value in self.choices or self._is_text(value)):
            return value
        close = did_you_mean(value, self.choices) if isinstance(value, str) else ""
        raise InputError(f"{name or self.name} must be {self._expected(number)}, got {short_repr(value)}{close}")

    def _as_number(self, value: object) -> float | None:
        if isinstance(value, str) and self.number is float:
            value = self.parse(value)  # YAML reads 1e-3, with no point, as a word
        if self.number is None or isinstance(value, bool):
            return None
        if self.number is int:
            return int(value) if isinstance(value, Integral) else None
        try:
            return float(value) if isinstance(value, Real) else None
        except OverflowError:
            return math.inf

    def _is_in_range(self, number: float) -> bool:
        if not self._fits(number):
            return False
        bounds = ((getattr(self, name), holds) for name, (_, holds) in _BOUNDS.items())
        return all(bound is None or holds(number, bound) for bound, holds in bounds)

    def _fits(self, number: float) -> bool:
        assert self.number is not None, "it is a number"
        return abs(number) < LARGEST[self.number]  # NaN compares false

    def _is_text(self, value: str) -> bool:
        is_text = not (self.is_switch or self.number or self.choices)
        # no name of a file or column has the character zero
        return is_text and (value != "" or self.default == "") and "\0" not in value

    def _expected(self, number: float | None) -> str:
        if self.is_switch:
            return "true or false"
        if self.number is not None:
            return " or ".join([self._expected_number(number), *self.choices])
        return f"one of {', '.join(self.choices)}" if self.choices else self.expects

    def _expected_number(self, number: float | None) -> str:
        """What it must be in the place of `number`, or of something that is no number."""
        if number is None:
            return "a whole number" if self.number is int else "a number"
        if self._fits(number):
            return self.bounds
        if self.number is int:
            return "a whole number that fits into 64 bits"
        if math.isfinite(number):
            return "a number below 3.4e+38"
        return f"a finite number {self.bounds}".rstrip()


class Checked(type):
    """Metaclass: what an object is made of first goes through `checked`, so that frozen objects stay as they are."""

    def __call__(cls, **values: Any) -> Any:
        """Returns an object made of the checked values."""
        return super().__call__(**cls.checked(**values))

    def checked(cls, **values: Any) -> dict[str, Any]:
        """Returns the values in their types. Raises `InputError` for one that cannot be brought to it."""
        raise NotImplementedError


class Section(metaclass=Checked):
    """Base of the sections: every value is checked and brought to its type when a section is made."""

    name: ClassVar[str]
    """Key in the settings file."""
    title: ClassVar[str]
    """Heading in the help and the guide."""
    _settings: ClassVar[tuple[Setting, ...]]

    @classmethod
    def checked(cls, **values: Any) -> dict[str, Any]:
        """Returns the values in their types; those of no setting are left to the constructor, which refuses them."""
        return values | {one.name: one.check(values[one.name]) for one in cls.settings() if one.name in values}

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        """Returns the settings that the section declares, in order."""
        if "_settings" not in vars(cls):
            cls._settings = tuple(_declared(cls))
        return cls._settings


def _declared(section: type[Any]) -> Iterator[Setting]:
    hints = get_type_hints(section)
    for one in fields(section):
        hint = hints[one.name]
        kinds = (hint,) if isinstance(hint, type) or get_origin(hint) is Literal else get_args(hint)
        words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
        about = {"choices": words, **one.metadata}
        number = next((kind for kind in kinds if kind in (int, float)), None)
        place = {"name": one.name, "section": section.name, "default": one.default}
        yield Setting(**place, number=number, is_switch=hint is bool, **about)
