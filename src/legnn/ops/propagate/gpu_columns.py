"""Which columns a program of a GPU sums."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 256
"""Columns of one program: each lane of a warp reads four numbers at once, twice."""


@triton.jit
def columns_of_head(head, start, CHANNELS: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr):
    """`BLOCK` columns from `start` of a head on, and which of them are its own.

    With `VECTOR` they begin at the last multiple of it: only there can a lane read as many numbers at once.
    """
    within = start + tl.arange(0, BLOCK)
    column = head * CHANNELS + within
    there = within < CHANNELS
    if VECTOR:
        column = (head * CHANNELS) // VECTOR * VECTOR + tl.arange(0, BLOCK)
        there = (column >= head * CHANNELS) & (column < (head + 1) * CHANNELS)
    return column, there


@triton.jit
def vectors_end(head, CHANNELS: tl.constexpr, VECTOR: tl.constexpr):
    """The end of the last vector that has a column of the head."""
    return ((head + 1) * CHANNELS + VECTOR - 1) // VECTOR * VECTOR


def cut_columns(columns: int) -> tuple[int, int, int, int]:
    """How to cut columns: into how many parts, of what width, which is a power of 2 and a tail.

    Triton's vectors have a power of 2 of numbers. 544 columns in three vectors of 256 would leave most of the last
    empty; in two of 256 + 16 nothing is.
    """
    blocks = max(columns // BLOCK, 1)
    width = columns if blocks == 1 else 8 * triton.cdiv(columns, 8 * blocks)
    block = 1 << (width.bit_length() - 1)
    return blocks, width, block, triton.next_power_of_2(width - block) if width > block else 0


def head_vector(x: Tensor, channels: int, heads: int) -> int:
    """The `VECTOR` of `columns_of_head`: how many numbers are 16 bytes; 0 where every head begins at such a vector.

    180 channels in bf16 do not: a lane would read 8 bytes at once.
    """
    vector = 16 // x.element_size()
    misaligned = heads > 1 and (channels // heads) % vector != 0 and x.stride(0) % vector == 0
    return vector if misaligned and channels // heads + vector <= BLOCK else 0
