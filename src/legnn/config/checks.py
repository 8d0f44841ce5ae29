"""Checks of single settings, so that every setting is refused in the same words."""

from __future__ import annotations

from collections.abc import Iterable

from legnn.errors import InputError, did_you_mean


def check_choice(name: str, value: str | None, choices: Iterable[str], *, optional: bool = False) -> None:
    """Refuse a value that is not one of the choices."""
    choices = list(choices)
    if value is None and optional:
        return
    if value not in choices:
        raise InputError(
            f"{name} must be one of {', '.join(choices)}, got {value!r}{did_you_mean(str(value), choices)}"
        )


def check_range(
    name: str,
    value: float | None,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> None:
    """Refuse a number outside its range; None stands for a value still to be chosen."""
    if value is None:
        return
    bounds = [
        (least, "at least", lambda bound: value >= bound),
        (above, "above", lambda bound: value > bound),
        (most, "at most", lambda bound: value <= bound),
        (below, "below", lambda bound: value < bound),
    ]
    stated = " and ".join(f"{words} {bound:g}" for bound, words, _ in bounds if bound is not None)
    # NaN compares false with every bound, so it is refused as well
    if not all(holds(bound) for bound, _, holds in bounds if bound is not None):
        raise InputError(f"{name} must be {stated}, got {value}")
