"""Launches of compiled kernels: found by all that Triton compiles a kernel for, and by no less."""

import itertools

import pytest
import torch
import triton
import triton.language as tl
from tests.training.test_cuda_graph import CUDA, gpu
from torch import nn
from triton.runtime.jit import JITFunction

from legnn.ops.runtime.launch import Launcher, fast_launch, specialization

ALIGNED, SHIFTED = torch.zeros(32), torch.zeros(33)[1:]
ARGUMENTS = [
    *(None, True, False, 0.0, 1.0, -2.5),
    *(0, 1, 2, 15, 16, 17, -1, -16, 2**31 - 1, 2**31, 2**31 + 16, -(2**31), -(2**31) - 1, 2**40, 2**63 - 1, 2**63),
    *(ALIGNED, SHIFTED, ALIGNED.double(), ALIGNED.bool(), ALIGNED.long(), ALIGNED.bfloat16(), nn.Parameter(ALIGNED)),
    *((), (1,), (2,), (3, 16), (3, 17), (3, ALIGNED), (3, SHIFTED), (3, 2**40), (None, 0.5)),
]


def scale(x, out, factor, size, BLOCK: tl.constexpr, SHIFT: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < size, other=0.0)
    if factor is not None:
        value *= factor
    tl.store(out + place, value + SHIFT, mask=place < size)


def triton_specialization(*arguments):
    """What Triton makes of the arguments of a kernel on an NVIDIA GPU, whether there is one or not."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend
    from triton.runtime.jit import create_function_from_signature

    kernel = JITFunction(scale)
    binder = create_function_from_signature(kernel.signature, kernel.params, make_backend(GPUTarget("cuda", 90, 32)))
    return str(binder(*arguments, BLOCK=8, SHIFT=0.0)[1])


def test_kernels_are_told_apart_as_triton_does():
    found: dict[object, str] = {}
    for one, other in itertools.product(ARGUMENTS, ARGUMENTS[:12]):
        arguments = ALIGNED, other, one, 16
        key, expected = specialization(arguments, {}), triton_specialization(*arguments)
        assert key is not None
        assert found.setdefault(key, expected) == expected, arguments


def test_constants_that_are_equal_and_of_different_types_are_different():
    keys = {specialization((), {"SHIFT": shift}) for shift in (1, 1.0, True, 2)}
    assert len(keys) == 4
    assert specialization((), {"A": 1, "B": 2}) != specialization((), {"A": 2, "B": 1})


@pytest.mark.parametrize("value", ["text", [1], torch.nn.Linear(1, 1), ("text",)])
def test_arguments_of_another_kind_are_left_to_triton(value):
    assert specialization((value,), {}) is None


def test_a_kernel_has_its_constants_after_its_arguments():
    def wrong(x, BLOCK: tl.constexpr, size):
        pass

    with pytest.raises(TypeError, match="constant before an argument"):
        Launcher(JITFunction(wrong))


@gpu
def test_a_launch_is_that_of_the_kernel_that_triton_would_choose():
    kernel = fast_launch(triton.jit(scale))
    base = torch.arange(70, dtype=torch.float32, device=CUDA)
    cases = itertools.product(
        (base[:64], base[1:65], base[:64].double()), (None, 1, 3, 16, 0.5), (64, 16, 1, 5), (0, 1, 2.5), (32, 64)
    )
    for x, factor, size, shift, block in [*cases] * 2:
        out, expected = torch.zeros(2, 64, device=CUDA, dtype=x.dtype)
        grid = (triton.cdiv(size, block),)
        kernel[grid](x, out, factor, size, BLOCK=block, SHIFT=shift, num_warps=1)
        compiled = kernel._kernel[grid](x, expected, factor, size, BLOCK=block, SHIFT=shift, num_warps=1)
        assert torch.equal(out, expected)
        key = specialization((x, out, factor, size), {"BLOCK": block, "SHIFT": shift, "num_warps": 1})
        assert kernel._compiled[torch.cuda.current_device(), *key].function == compiled.function


@gpu
def test_a_launch_is_captured_on_the_current_stream():
    kernel = fast_launch(triton.jit(scale))
    x, out = torch.arange(64.0, device=CUDA), torch.zeros(64, device=CUDA)
    kernel[(1,)](x, out, 2.0, 64, BLOCK=64, SHIFT=0.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[(1,)](x, out, 3.0, 64, BLOCK=64, SHIFT=0.0)
    assert torch.equal(out, 2 * x)
    graph.replay()
    assert torch.equal(out, 3 * x)
