"""Kernels run on several threads, in whatever order, and nothing goes missing."""

import ctypes

import numba
import numpy as np
import pytest
import torch

from legnn.ops.runtime import threads
from legnn.ops.runtime.jit import kernel

SECONDS = 20


@pytest.fixture
def _three_threads():
    with threads.limit_threads(3):
        yield


@kernel
def _count(begin, end, out):
    for i in range(begin, end):
        out[i] += 1


@kernel
def _need_memory(begin, end, numbers, out):
    for i in range(begin, end):
        out[i] = np.empty(numbers).size


@pytest.mark.usefixtures("_three_threads")
@pytest.mark.parametrize("cuts", [[0, 5, 5, 9, 100], list(range(101)), range(0, 101, 4), [0, 100]])
def test_every_part_is_done_once(cuts):
    out = np.zeros(100, np.int64)
    threads.run_parallel(_count, cuts, threads.SMALL, out)
    assert (out == 1).all()


@pytest.mark.usefixtures("_three_threads")
def test_several_threads_take_part():
    usleep = ctypes.CDLL(None).usleep
    usleep.argtypes = [ctypes.c_uint]

    @numba.njit(nogil=True)
    def meet(begin, end, arrived, met):
        arrived[begin] = 1
        for _ in range(SECONDS * 1000):
            if arrived.sum() == arrived.size:
                met[begin] = 1
                return
            usleep(1000)

    arrived, met = np.zeros(3, np.int64), np.zeros(3, np.int64)
    threads.run_parallel(meet, [0, 1, 2, 3], threads.SMALL, arrived, met)
    assert met.all(), "each range waited for the others"


@pytest.mark.usefixtures("_three_threads")
def test_a_kernel_without_memory_raises_an_error_and_the_threads_go_on_working():
    out = np.zeros(10, np.int64)
    with pytest.raises(MemoryError):
        threads.run_parallel(_need_memory, range(11), threads.SMALL, 2**59, out)
    threads.run_parallel(_need_memory, range(11), threads.SMALL, 3, out)
    assert (out == 3).all()


def test_little_work_is_done_in_a_single_range_by_the_calling_thread():
    @numba.njit(nogil=True)
    def note(begin, end, seen):
        seen[begin] = end

    seen = np.zeros(2, np.int64)
    with threads.limit_threads(2):
        threads.run_parallel(note, [0, 1, 2], threads.SMALL - 1, seen)
        assert seen.tolist() == [2, 0]
        threads.run_parallel(note, [0, 1, 2], threads.SMALL, seen)
        assert seen.tolist() == [1, 2]


def test_limited_threads_are_restored():
    before = torch.get_num_threads()
    with threads.limit_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
