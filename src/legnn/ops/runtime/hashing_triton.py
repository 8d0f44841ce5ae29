"""`hashing.mix` for Triton's kernels."""

# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl


@triton.jit
def mix(word):
    """Returns `hashing.mix` of 32-bit words."""
    word = word.to(tl.uint32)
    word = (word ^ (word >> 16)) * 0x7FEB352D
    word = (word ^ (word >> 15)) * 0x846CA68B
    return word ^ (word >> 16)
