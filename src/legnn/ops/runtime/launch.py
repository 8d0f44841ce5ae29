"""Launches of Triton kernels, with less work on the host than Triton's own way takes to find the compiled kernel.

`kernel[grid](...)` takes Triton some 30 µs: it reads its environment, and makes texts of the types of all arguments.
Most launches of a small step take the GPU less. A kernel with `@fast_launch` is compiled and first launched by Triton,
and then found by the same facts that Triton compiles it for: types, whether an integer is 1 or divisible by 16, whether
an address is divisible by 16, constants and options, and the device. Triton's hooks for profilers see the first launch
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from triton.compiler import CompiledKernel
from triton.runtime import driver
from triton.runtime.jit import JITFunction

Key = tuple[Any, ...]


class _Compiled(NamedTuple):
    """What a launch calls, and what it gives it beside the arguments that differ from launch to launch."""

    run: Callable[..., object]
    function: Any
    metadata: Any
    constants: tuple[Any, ...]


class Launcher:
    """A kernel whose parameters are arguments, given by position, and then constants, given by name."""

    def __init__(self, kernel: JITFunction[Any]) -> None:
        self._kernel = kernel
        self._constants = [one for one in kernel.params if one.is_constexpr]
        self._number = len(kernel.params) - len(self._constants)
        if any(one.is_constexpr for one in kernel.params[: self._number]):
            raise TypeError(f"{kernel.fn.__name__} has a constant before an argument")
        self._compiled: dict[Key, _Compiled] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return partial(self._launch, grid)

    def _launch(self, grid: tuple[int, ...], /, *arguments: Any, **named: Any) -> None:
        current_device, current_stream = _current()
        device = current_device()
        key = specialization(arguments, named)
        found = None if key is None else self._compiled.get((device, *key))
        if found is None:
            self._launch_first(grid, arguments, named, None if key is None else (device, *key))
            return
        x, y, z = grid if len(grid) == 3 else (*grid, 1, 1)[:3]
        run, function, metadata, constants = found
        run(x, y, z, current_stream(device), function, metadata, None, None, None, *arguments, *constants)

    def _launch_first(
        self, grid: tuple[int, ...], arguments: Sequence[Any], named: dict[str, Any], key: Key | None
    ) -> None:
        compiled = self._kernel[grid](*arguments, **named)
        if key is None or len(arguments) != self._number or not isinstance(compiled, CompiledKernel):
            return
        constants = tuple(named[one.name] for one in self._constants)
        self._compiled[key] = _Compiled(compiled.run, compiled.function, compiled.packed_metadata, constants)


def fast_launch(kernel: Any) -> Any:
    """Decorator of a kernel that the host launches: `@fast_launch` above `@triton.jit`."""
    # in the interpreter there is nothing to find; AMD's compiler asks more of an address
    return Launcher(kernel) if isinstance(kernel, JITFunction) and torch.version.hip is None else kernel


def specialization(arguments: Sequence[Any], named: dict[str, Any]) -> Key | None:
    """Returns what a kernel is compiled for, at least as specific as Triton is; None for arguments of another kind."""
    # 1, 1.0 and True are equal, and different constants
    key: list[Any] = [*named, *named.values(), *map(type, named.values())]
    for value in arguments:
        kind = type(value)
        if kind is Tensor or kind is nn.Parameter:
            key.append(value.dtype)
            key.append(value.data_ptr() & 15 == 0)
        elif kind is int:
            key.append(1 if value == 1 else (_bits(value), value & 15 == 0))
        elif value is None or kind is float or kind is bool:
            key.append(kind)
        elif kind is tuple and (inner := specialization(value, {})) is not None:
            key.append(inner)
        else:
            return None
    return tuple(key)


def _bits(value: int) -> int:
    """Of the type that Triton gives an integer, negative for one with a sign."""
    if -(2**31) <= value < 2**31:
        return -32
    return -64 if value < 2**63 else 64


@lru_cache(None)
def _current() -> tuple[Callable[[], int], Callable[[int], int]]:
    """Triton's functions for the current device and its stream, which first start the driver."""
    return driver.active.get_current_device, driver.active.get_current_stream
