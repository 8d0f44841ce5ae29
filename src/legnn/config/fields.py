"""Declares a setting once, as a dataclass field that also holds its help, range and choices.

The sections are plain dataclasses and not models of pydantic or msgspec: neither is installed with the libraries that
legnn needs, and both would still need the help, the ranges in words and the one-sentence messages that stand here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypedDict, TypeVar, Unpack, get_args, get_origin, get_type_hints

from legnn.errors import InputError, did_you_mean, short_repr

T = TypeVar("T")

_BOUNDS = {
    "least": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "most": ("at most", operator.le),
    "below": ("below", operator.lt),
}

LARGEST: dict[type, float] = {int: 2.0**63, float: 3.4e38}
"""Numbers must be smaller to fit into tensors."""


class Properties(TypedDict, total=False):
    """Properties of a setting besides its type, default and help; `Setting` describes them."""

    choices: Sequence[str]
    least: float
    above: float
    most: float
    below: float
    expects: str
    chosen: str
    is_common: bool
    since: int


def setting(default: T, help: str, **properties: Unpack[Properties]) -> T:
    """Declares a field of a `Section`, whose type is the annotation."""
    return field(default=default, metadata={"help": help, **properties})


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Name, type, default, range and help of a setting."""

    name: str
    """Dotted name, such as `model.appnp.teleport`."""
    default: Any
    """Value in a section that is built directly."""
    help: str
    number: type[int] | type[float] | None
    """Type of a number that it accepts."""
    is_switch: bool
    choices: Sequence[str] = ()
    """Words that it accepts: those of a `Literal` annotation, or of a registry that may grow."""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    expects: str = "a word"
    """Description of a text, for the message about another value. A text may be empty if its default is."""
    chosen: str | None = None
    """Choice of a preset in words, where help cannot show one value."""
    is_common: bool = False
    """Whether functions have an argument, and commands an option, of its last name."""
    since: int = 1
    """Version of the settings that introduced it: runs of earlier versions are read with its default."""

    @property
    def section(self) -> str:
        """First part of the name."""
        return self.name.partition(".")[0]

    @property
    def keyword(self) -> str:
        """Last part of the name."""
        return self.name.rpartition(".")[2]

    @property
    def bounds(self) -> str:
        """The range in words, such as "above 0 and at most 1"; empty without bounds."""
        limits = ((words, getattr(self, name)) for name, (words, _) in _BOUNDS.items())
        return " and ".join(f"{words} {bound:g}" for words, bound in limits if bound is not None)

    def parse(self, text: str) -> Any:
        """Returns the value that a text on a command line means; an unusable text is left for `check` to refuse."""
        if self.is_switch:
            return {"true": True, "yes": True, "false": False, "no": False}.get(text.lower(), text)
        try:
            return text if self.number is None else self.number(text)
        except ValueError:
            return text

    def check(self, value: object) -> Any:
        """Returns `value` in the type of the setting. Raises `InputError` if it is of another kind or out of range."""
        if self.is_switch and isinstance(value, bool):
            return value
        number = self._as_number(value)
        if number is not None and self._is_in_range(number):
            return number
        if isinstance(value, str) and (value in self.choices or self._is_text(value)):
            return value
        close = did_you_mean(value, self.choices) if isinstance(value, str) else ""
        raise InputError(
            f"{self.name} must be {self._expected(number)}, got {short_repr(value)}{close}", setting=self.name
        )

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
        """Describes the numbers that are accepted instead of `number`, or of a value that is no number."""
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
    """Metaclass: the arguments of a constructor first go through `checked`, so that classes can be frozen."""

    def __call__(cls, **values: Any) -> Any:
        """Returns an object made of the checked values."""
        return super().__call__(**cls.checked(**values))

    def checked(cls, **values: Any) -> dict[str, Any]:
        """Returns the values in their types. Raises `InputError` for one that cannot be brought to it."""
        raise NotImplementedError


class Section(metaclass=Checked):
    """Base of the sections: every value is checked and brought to its type when a section is made.

    A field may be another section, and is then given as one or as a mapping: `ModelSettings(appnp={"teleport": 0.2})`.
    """

    name: ClassVar[str]
    """Dotted name."""
    title: ClassVar[str]
    """Heading in the help and the guide."""

    @classmethod
    def checked(cls, **values: Any) -> dict[str, Any]:
        """Returns the values in their types; those of no setting are left to the constructor, which refuses them."""
        known = _fields(cls)
        return {name: _checked(known[name], value) if name in known else value for name, value in values.items()}

    @classmethod
    def settings(cls) -> list[Setting]:
        """Returns the settings that the section declares, in order, and after them those of sections in it."""
        declared = _fields(cls).values()
        nested = [kind for kind in declared if not isinstance(kind, Setting)]
        return [s for s in declared if isinstance(s, Setting)] + [s for kind in nested for s in kind.settings()]

    def flat(self) -> dict[str, Any]:
        """Returns the values by dotted name."""
        values: dict[str, Any] = {}
        for name in _fields(type(self)):
            value = getattr(self, name)
            values |= value.flat() if isinstance(value, Section) else {f"{self.name}.{name}": value}
        return values


def _checked(kind: Setting | type[Section], value: Any) -> Any:
    if isinstance(kind, Setting):
        return kind.check(value)
    if isinstance(value, Mapping):
        return kind(**value)
    if not isinstance(value, kind):
        raise InputError(f"{kind.name} must be a mapping of settings, got {short_repr(value)}")
    return value


@cache
def _fields(section: type[Section]) -> dict[str, Setting | type[Section]]:
    """Returns the setting, or the section, of each field of a section."""
    hints = get_type_hints(section)
    assert is_dataclass(section), "sections are"
    return {field.name: _declared(section, field, hints[field.name]) for field in fields(section)}


def _declared(section: type[Section], field: Field[Any], hint: Any) -> Setting | type[Section]:
    if isinstance(hint, type) and issubclass(hint, Section):
        return hint
    kinds = (hint,) if isinstance(hint, type) or get_origin(hint) is Literal else get_args(hint)
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    number = next((kind for kind in kinds if kind in (int, float)), None)
    return Setting(
        name=f"{section.name}.{field.name}",
        default=field.default,
        number=number,
        is_switch=hint is bool,
        **{"choices": words, **field.metadata},
    )
