"""Kernels that share their rows with PyTorch's OpenMP threads, without Python between one thread and the next.

A kernel whose first line is `if fork_join(begin, end): return` can be called in two ways: with a range of rows, which
it computes, or with the address of a job and `FORK`, upon which it calls itself for one range of the job after the
other, on every thread. A callback in Python would do the same, but each thread would have to take the interpreter's
lock first, and for each range again: with two threads that took 50 to 100 µs a kernel, as long as many a kernel runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types
from numba.core.callconv import RETCODE_NONE, RETCODE_OK
from numba.extending import intrinsic

FORK = -1
"""In the place of a kernel's `end`: `begin` is the address of a job."""

_void, _byte, _word, _long = ir.VoidType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)
_address = _byte.as_pointer()
_body = ir.FunctionType(_void, [_address])
_gomp_parallel = ir.FunctionType(_void, [_body.as_pointer(), _address, _word, _word])


class Job(NamedTuple):
    """Numbers of 64 bits that threads read and write; the rows at which ranges begin and end follow them."""

    gomp_parallel: int
    """The address of OpenMP's function; 0 leaves all ranges to the calling thread."""
    threads: int
    ranges: int
    next: int = 0
    """Ranges that a thread has begun."""
    failed: int = 0
    """1 when a kernel has raised an error."""

    def with_cuts(self, cuts: Sequence[int]) -> array[int]:
        """Returns the job in memory."""
        return array("q", [*self, *cuts])


FIELDS = {name: place for place, name in enumerate(Job._fields)}


@intrinsic
def fork_join(context: Any, begin: Any, end: Any) -> Any:
    """Returns whether a kernel was called with a job, all of which is done then."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        # result, error, begin, end, and what is the same for all ranges
        kernel, (first, last) = builder.function, arguments
        rest = kernel.args[4:]
        # within its callers it would be compiled once more for each
        kernel.attributes.add("noinline")
        is_fork = builder.icmp_signed("==", last, last.type(FORK))
        with builder.goto_entry_block():
            shared = builder.alloca(ir.LiteralStructType([_address, *(one.type for one in rest)]))
        with builder.if_then(is_fork):
            job = builder.inttoptr(first, _address)
            for place, value in enumerate([job, *map(_without_reference_count, rest)]):
                builder.store(value, builder.gep(shared, [_word(0), _word(place)]))
            body, data = _define_body(kernel, shared.type), builder.bitcast(shared, _address)
            gomp_parallel = builder.load(_field(builder, job, "gomp_parallel"))
            with builder.if_else(builder.icmp_signed("==", gomp_parallel, _long(0))) as (alone, together):
                with alone:
                    builder.call(body, [data])
                with together:
                    function = builder.inttoptr(gomp_parallel, _gomp_parallel.as_pointer())
                    threads = builder.trunc(builder.load(_field(builder, job, "threads")), _word)
                    builder.call(function, [body, data, threads, _word(0)])
        return is_fork

    return types.boolean(begin, end), generate


def _define_body(kernel: ir.Function, shared: ir.Type) -> ir.Function:
    """What each thread runs: it calls `kernel` for one range after the other, until none is left."""
    body = ir.Function(kernel.module, _body, f"{kernel.name}.body")
    body.linkage = "internal"
    begin, work, call, fail, end = (body.append_basic_block(name) for name in ("begin", "work", "call", "fail", "end"))
    builder = ir.IRBuilder(begin)
    places = builder.bitcast(body.args[0], shared)
    job, *rest = (
        builder.load(builder.gep(places, [_word(0), _word(place)])) for place in range(1 + len(kernel.args[4:]))
    )
    number = builder.load(_field(builder, job, "ranges"))
    # nobody reads the result, or which error it was
    unread = [builder.bitcast(builder.alloca(_long), one.type) for one in kernel.args[:2]]
    builder.branch(work)
    builder.position_at_end(work)
    mine = builder.atomic_rmw("add", _field(builder, job, "next"), _long(1), "monotonic")
    builder.cbranch(builder.icmp_signed("<", mine, number), call, end)
    builder.position_at_end(call)
    cut = builder.gep(_field(builder, job, "gomp_parallel"), [builder.add(mine, _long(len(FIELDS)))])
    rows = [builder.load(builder.gep(cut, [_long(place)])) for place in (0, 1)]
    status = builder.call(kernel, [*unread, *rows, *rest])
    is_done = builder.or_(*(builder.icmp_signed("==", status, code) for code in (RETCODE_OK, RETCODE_NONE)))
    builder.cbranch(is_done, work, fail)
    builder.position_at_end(fail)
    builder.store(_long(1), _field(builder, job, "failed"))
    builder.branch(end)
    builder.position_at_end(end)
    builder.ret_void()
    return body


def _without_reference_count(argument: ir.Argument) -> ir.Value:
    """`argument`, or null where it points to what counts the references to an array.

    A kernel that passes arrays on counts them, row by row: threads that share a count wait for each other. Null is not
    counted, and who called the kernel holds its arrays. Numba names the fields of an argument `arg.name.number`; the
    count is the first of an array's.
    """
    is_count = isinstance(argument.type, ir.PointerType) and argument.name.endswith(".0")
    return argument.type(None) if is_count else argument


def _field(builder: ir.IRBuilder, job: ir.Value, name: str) -> ir.Value:
    return builder.gep(builder.bitcast(job, _long.as_pointer()), [_long(FIELDS[name])])
