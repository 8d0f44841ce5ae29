"""The compiled forms of the operations, to be compared with plain PyTorch.

Without a GPU, Triton's kernels run in its interpreter: the same code, slowly.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from legnn.graph import LabelGraph
from legnn.ops import Scales
from legnn.ops.csr import adjacency

GPU = torch.cuda.is_available()
FORMS = [
    pytest.param(("cpu", "cpu"), id="numba"),
    pytest.param(
        ("gpu", "cuda" if GPU else "cpu"), id="triton" if GPU else "triton-interpreted", marks=[pytest.mark.gpu] * GPU
    ),
]
TOLERANCE = {torch.float32: {"rtol": 2e-4, "atol": 2e-4}, torch.bfloat16: {"rtol": 2e-2, "atol": 6e-2}}


@contextmanager
def using(implementation: str) -> Iterator[None]:
    """Within it, the operations use the module `implementation` of their packages, whatever the device."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEGNN_BACKEND", implementation)
        yield


def many(form, monkeypatch: pytest.MonkeyPatch) -> int:
    """As many neighbors as a node may have; in the interpreter, for which chunks are shortened, enough for several."""
    if form[0] == "cpu" or GPU:
        return 100_000
    monkeypatch.setattr(adjacency, "LONG_ROW", 16)
    return 40


def to(graph: LabelGraph, device: str) -> LabelGraph:
    return LabelGraph(graph.adjacency.to(device), graph.shown.to(device), graph.y.to(device), graph.num_classes)


def pair(*shape, dtype, device):
    """The same random numbers in double precision on the CPU and in `dtype` on `device`, both with gradients."""
    fast = torch.randn(*shape).to(device, dtype)
    return fast.cpu().double().requires_grad_(), fast.requires_grad_()


def assert_equal(found, expected, dtype):
    for ours, plain in zip(found, expected, strict=True):
        if ours is None or plain is None:
            assert ours is plain
            continue
        torch.testing.assert_close(ours.detach().cpu().double(), plain.detach().double(), **TOLERANCE[dtype])


def random_scales(nodes, device, *, given: bool):
    if not given:
        return Scales(), Scales()
    factors = torch.rand(4, nodes)
    return Scales(*factors), Scales(*factors.to(device))
