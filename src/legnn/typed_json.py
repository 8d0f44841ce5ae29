"""Dataclasses as JSON files: written atomically, and checked field by field when they are read."""

from __future__ import annotations

import json
import math
import types
import typing
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from legnn.errors import InputError, first_line, short_repr
from legnn.files import write_text

T = TypeVar("T")


def write_json(path: Path, value: Any) -> None:
    """Write a dataclass to `path`, atomically."""
    write_text(path, to_json(value))


def to_json(value: Any) -> str:
    """Returns the text of a dataclass."""
    return json.dumps(asdict(value), indent=1, ensure_ascii=False) + "\n"


def read_json(path: Path, kind: type[T], advice: str = "restore it from a copy") -> T:
    """Returns the dataclass `kind` that `path` holds; raises `InputError` if a key is missing or of another type."""
    try:
        return as_kind(parse_json(path.read_bytes()), kind, "the file")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({first_line(error)}); {advice}") from None


def parse_json(content: bytes) -> Any:
    """Returns the value of a JSON text in UTF-8; raises `ValueError` also for numbers that are not finite."""
    return json.loads(content.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)


def as_kind(value: Any, kind: type[T], where: str) -> T:
    """Returns what JSON holds as `kind`, a dataclass or a type of one's fields; raises `ValueError` for another."""
    content: T = _as_kind(value, kind, where)
    return content


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def _as_kind(value: Any, kind: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        options = [option for option in arguments if option is not type(None)]
        if value is None and len(options) < len(arguments):
            return None
        # plain types tell apart by themselves; there is at most one other in a union
        plain = next((option for option in options if type(value) is option), options[0])
        return _as_kind(value, plain, where)
    if is_dataclass(kind) and isinstance(value, dict):
        return _as_dataclass(value, kind, where)
    if origin is list and isinstance(value, list):
        return [_as_kind(item, arguments[0], where) for item in value]
    if origin is tuple and isinstance(value, list) and len(value) == len(arguments):
        return tuple(_as_kind(item, part, where) for item, part in zip(value, arguments, strict=True))
    if origin is dict and isinstance(value, dict):
        return {key: _as_kind(item, arguments[1], where) for key, item in value.items()}
    if kind is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{where} is too large a number") from None
    if origin is typing.Literal and value in arguments:
        return value
    if kind is not Any and type(value) is not kind:
        raise ValueError(f"{where} is {short_repr(value)}")
    return value


def _as_dataclass(value: dict[str, Any], kind: Any, where: str) -> Any:
    hints = _hints(kind)
    known = {item.name for item in fields(kind)}
    needed = {item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING}
    for name in sorted((needed - value.keys()) | (value.keys() - known)):
        raise ValueError(f"{where} {'has an unknown' if name in value else 'lacks the'} key {name!r}")
    return kind(**{name: _as_kind(item, hints[name], name) for name, item in value.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
