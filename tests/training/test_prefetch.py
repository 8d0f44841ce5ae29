"""Batches made ready beforehand come in order, once, and their errors with them, whatever the number of threads."""

import threading
import time

import pytest
import torch

from legnn.training import prefetch as module
from legnn.training.prefetch import AHEAD, QUEUED, map_ahead, prefetch

SKIP = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
ON_GPU = [pytest.mark.gpu, SKIP]
DEVICES = [pytest.param(f"cuda {threads}", marks=ON_GPU) for threads in (1, 2, 5)]


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch) -> str:
    """A GPU, with some number of threads."""
    name, _, threads = request.param.partition(" ")
    monkeypatch.setattr(module, "THREADS", int(threads or 1))
    return name


def ready(count: int, device: str, fail_at: int = -1):
    def number(i: int) -> torch.Tensor:
        if i == fail_at:
            raise ValueError(f"no batch {i}")
        return torch.full((1000,), i, device=device)

    return prefetch(number, range(count), torch.device(device), lambda tensor: [tensor])


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_all_come_in_order(device, count):
    assert [int(tensor.sum()) // 1000 for tensor in ready(count, device)] == list(range(count))


@pytest.mark.parametrize("place", [0, 1, 2, 3, 19])
def test_an_error_in_the_making_is_raised_where_the_batch_is_asked_for(device, place):
    found = []
    with pytest.raises(ValueError, match=f"no batch {place}"):
        found.extend(ready(20, device, fail_at=place))
    assert [int(tensor[0]) for tensor in found] == list(range(place))


def test_whoever_stops_early_leaves_no_thread_behind(device):
    before = threading.active_count()
    batches = ready(1000, device)
    next(batches)
    next(batches)
    batches.close()
    assert threading.active_count() == before


@pytest.mark.gpu
@SKIP
def test_on_a_gpu_every_thread_has_a_stream_of_its_own_the_same_in_every_epoch(monkeypatch):
    monkeypatch.setattr(module, "THREADS", 3)
    begin = threading.Barrier(3, timeout=20)
    epochs = []
    for _ in range(2):
        used: dict[int, int] = {}

        def prepare(i: int, used=used) -> torch.Tensor:
            if i in (1, 2, 3):
                begin.wait()
            used[i] = torch.cuda.current_stream().cuda_stream
            return torch.zeros(1, device="cuda")

        assert len(list(prefetch(prepare, range(4), torch.device("cuda"), lambda tensor: [tensor]))) == 4
        assert used[0] == torch.cuda.current_stream().cuda_stream
        epochs.append(set(used.values()))
        assert len(epochs[-1]) == 4
    assert epochs[0] == epochs[1]


@pytest.mark.gpu
@SKIP
def test_the_device_is_never_far_behind_or_batches_would_fill_its_memory():
    steps = []
    for batch in ready(30, "cuda"):
        torch.cuda._sleep(10_000_000)
        batch.sum()
        steps.append(torch.cuda.current_stream().record_event())
        # the steps that were launched before, and this one
        assert sum(not step.query() for step in steps) <= QUEUED + 1
    assert len(steps) == 30


@pytest.mark.parametrize("threads", [1, 3])
def test_what_threads_make_comes_in_order_and_errors_arrive(threads):
    assert list(map_ahead(lambda k: 10 // k, range(1, 9), threads)) == [10 // k for k in range(1, 9)]
    assert list(map_ahead(lambda k: k, [], threads)) == []
    found = map_ahead(lambda k: 10 // k, [1, 2, 0, 3], threads)
    assert [next(found), next(found)] == [10, 5]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_what_takes_longer_than_those_after_it_still_comes_first():
    def slow(k: int) -> int:
        time.sleep(0.02 * (3 - k % 4))
        return k

    assert list(map_ahead(slow, range(12), 3, ahead=AHEAD)) == list(range(12))


def test_no_more_is_taken_ahead_than_asked_for():
    taken = []

    def items():
        for k in range(100):
            taken.append(k)
            yield k

    found = map_ahead(lambda k: k, items(), 2, ahead=3)
    assert [next(found), next(found)] == [0, 1]
    # the two that were read, and two threads and three ahead of them
    assert len(taken) == 7
    found.close()


def test_every_thread_begins_once():
    begun, done = [], []
    both = threading.Barrier(2, timeout=20)

    def work(k: int) -> int:
        if k < 2:
            both.wait()
        done.append(threading.get_ident())
        return k

    assert list(map_ahead(work, range(10), 2, begin=lambda: begun.append(threading.get_ident()))) == list(range(10))
    assert sorted(begun) == sorted(set(done))
    assert len(begun) == 2


def test_who_stops_early_leaves_no_thread_behind():
    before = threading.active_count()
    found = map_ahead(lambda k: k, range(100), 3)
    assert next(found) == 0
    found.close()
    assert threading.active_count() == before
