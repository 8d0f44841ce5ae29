"""Rows in the host's memory, read by a GPU."""

import numpy as np
import pytest
import torch

from legnn.ops import FeatureCache, gather_rows
from legnn.ops.gather.gpu import gather_from_host
from legnn.runs.device import register_pinned

GPU = torch.cuda.is_available()
CPU = torch.device("cpu")


@pytest.mark.parametrize("shape", [(50, 3), (50, 128), (50, 130), (50,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("hot", [0, 7, 50])
@pytest.mark.skipif(GPU, reason="in Triton's interpreter, where all memory is the host's")
def test_gathered_rows_are_those_of_the_matrix(shape, dtype, hot):
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(-100, 100, shape, generator=generator).to(dtype)
    count = torch.rand(50, generator=generator)
    near = FeatureCache.of(values, count, hot) if hot else None
    rows = torch.randint(50, (33,), generator=generator)
    assert torch.equal(gather_from_host(values, rows, near), values[rows])
    assert gather_from_host(values, rows[:0], near).shape == (0, *shape[1:])


def test_hot_rows_are_those_with_the_largest_count():
    values, count = torch.arange(40.0).view(10, 4), torch.tensor([3, 1, 9, 9, 0, 5, 2, 8, 1, 1])
    hot = FeatureCache.of(values, count, 4)
    assert torch.equal(hot.values, values[[2, 3, 5, 7]])
    assert hot.position.tolist() == [-1, -1, 0, 1, -1, 2, -1, 3, -1, -1]


def test_on_one_device_rows_are_selected():
    values = torch.randn(9, 4)
    assert torch.equal(gather_rows(values, torch.tensor([3, 3, 0]), CPU), values[[3, 3, 0]])


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="needs a GPU")
@pytest.mark.parametrize("hot", [0, 200])
def test_a_gpu_reads_pinned_memory_of_the_host(hot):
    device = torch.device("cuda")
    array = np.random.default_rng(0).random((1000, 100), np.float32)
    values = torch.from_numpy(array)
    rows = torch.randint(1000, (5000,), device=device)
    assert torch.equal(gather_rows(values, rows, device).cpu(), values[rows.cpu()])
    assert register_pinned(values)
    assert values.is_pinned()
    near = FeatureCache.of(values, torch.rand(1000, device=device), hot) if hot else None
    if near is not None:
        # from the GPU's own memory, not from the host's
        near.values.add_(1)
    found = gather_rows(values, rows, device, near).cpu()
    wanted = values[rows.cpu()]
    if near is not None:
        wanted = wanted + (near.position[rows] >= 0).cpu()[:, None]
    assert torch.equal(found, wanted)
    del values
    again = torch.from_numpy(array)
    # the memory is given back with the tensor that it was pinned for
    assert not again.is_pinned()
    assert register_pinned(again)


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="needs a GPU")
def test_memory_that_cannot_be_pinned_is_left_alone():
    array = np.zeros((100, 10), np.float32)
    one, other = torch.from_numpy(array), torch.from_numpy(array)
    assert register_pinned(one)
    # pinned already
    assert not register_pinned(other)
    assert float(torch.ones(3, device="cuda").sum()) == 3
    assert not register_pinned(torch.zeros(10, 10).T[:5])
