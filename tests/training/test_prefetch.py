"""Batches made ready beforehand come in order, once, and their errors with them."""

import threading

import pytest
import torch

from legnn.training.prefetch import prefetch

SKIP = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, SKIP])]


def numbers(count: int, device: str, fail_at: int = -1):
    for i in range(count):
        if i == fail_at:
            raise ValueError(f"no batch {i}")
        yield torch.full((1000,), i, device=device)


def ready(count: int, device: str, **options):
    return prefetch(numbers(count, device, **options), torch.device(device), lambda tensor: [tensor])


@pytest.mark.parametrize("device", DEVICES)
def test_all_come_in_order(device):
    assert [int(tensor.sum()) // 1000 for tensor in ready(20, device)] == list(range(20))


@pytest.mark.parametrize("device", DEVICES)
def test_an_error_in_the_making_is_raised_where_the_batch_is_asked_for(device):
    found = []
    with pytest.raises(ValueError, match="no batch 3"):
        found.extend(ready(20, device, fail_at=3))
    assert len(found) == 3


@pytest.mark.parametrize("device", DEVICES)
def test_whoever_stops_early_leaves_no_thread_behind(device):
    before = threading.active_count()
    batches = ready(1000, device)
    next(batches)
    batches.close()
    assert threading.active_count() == before
