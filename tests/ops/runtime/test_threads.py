"""Kernels run on several threads, in whatever order, and nothing goes missing."""

import ctypes
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
import torch

from legnn.ops.runtime import threads
from legnn.ops.runtime.fork_join import fork_join
from legnn.ops.runtime.jit import kernel

SECONDS = 20


@pytest.fixture(params=["OpenMP", "pool"])
def _both_ways(request, monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    if request.param == "pool":
        monkeypatch.setattr(threads, "gomp_parallel_address", lambda: 0)
    elif sys.platform == "linux":
        assert threads.gomp_parallel_address(), "PyTorch's own threads are there to be used"
    yield
    torch.set_num_threads(before)


@kernel
def _count(begin, end, out):
    if fork_join(begin, end):
        return
    for i in range(begin, end):
        out[i] += 1


@kernel
def _need_memory(begin, end, numbers, out):
    if fork_join(begin, end):
        return
    out[begin] = np.empty(numbers).size


@kernel
def _do_not_fork(begin, end, out):
    for i in range(begin, end):
        out[i] += 1


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("cuts", [[0, 5, 5, 9, 100], list(range(101)), range(0, 101, 4), [0, 100]])
def test_every_part_is_done_once(cuts):
    out = np.zeros(100, np.int64)
    threads.run_parallel(_count, cuts, threads.SMALL, out)
    assert (out == 1).all()


@pytest.mark.usefixtures("_both_ways")
def test_several_threads_take_part():
    usleep = ctypes.CDLL(None).usleep
    usleep.argtypes = [ctypes.c_uint]

    @numba.njit(nogil=True)
    def meet(begin, end, arrived, met):
        if fork_join(begin, end):
            return
        arrived[begin] = 1
        for _ in range(SECONDS * 1000):
            if arrived.sum() == arrived.size:
                met[begin] = 1
                return
            usleep(1000)

    arrived, met = np.zeros(3, np.int64), np.zeros(3, np.int64)
    threads.run_parallel(meet, [0, 1, 2, 3], threads.SMALL, arrived, met)
    assert met.all(), "each range waited for the others"


@pytest.mark.usefixtures("_both_ways")
def test_a_kernel_without_memory_raises_an_error_and_the_threads_go_on_working():
    out = np.zeros(10, np.int64)
    with pytest.raises(MemoryError):
        threads.run_parallel(_need_memory, range(11), threads.SMALL, 2**59, out)
    threads.run_parallel(_need_memory, range(11), threads.SMALL, 3, out)
    assert (out == 3).all()


def test_a_kernel_that_cannot_be_shared_is_refused():
    with threads.limit_threads(2), pytest.raises(AssertionError, match=r"_do_not_fork does not begin with `fork_join`"):
        threads.run_parallel(_do_not_fork, range(11), threads.SMALL, np.zeros(10))


def test_a_kernel_that_is_loaded_from_the_cache_runs_on_all_threads(tmp_path):
    program = """
import numpy as np, torch
from legnn.ops.norm_act_dropout.cpu import _scale_act_dropout, scale_act_dropout
torch.set_num_threads(2)
x = torch.randn(1000, 100, generator=torch.Generator().manual_seed(0))
out = scale_act_dropout(x, None, None, 0.5, torch.tensor([1, 2]), relu=True)
torch.set_num_threads(1)
same = torch.equal(out, scale_act_dropout(x, None, None, 0.5, torch.tensor([1, 2]), relu=True))
print(same, sum(_scale_act_dropout.stats.cache_hits.values()))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [one.stdout.split() for one in found] == [["True", "0"], ["True", "1"]]


def test_little_work_is_done_in_one_range_by_one_thread():
    @numba.njit
    def note(begin, end, seen):
        if fork_join(begin, end):
            return
        seen[begin] = end

    seen = np.zeros(2, np.int64)
    with threads.limit_threads(2):
        threads.run_parallel(note, [0, 1, 2], threads.SMALL - 1, seen)
        assert seen.tolist() == [2, 0]
        threads.run_parallel(note, [0, 1, 2], threads.SMALL, seen)
        assert seen.tolist() == [1, 2]
