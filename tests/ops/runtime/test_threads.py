"""Kernels run on several threads, in whatever order, and nothing goes missing."""

import sys
import threading

import numpy as np
import pytest
import torch

from legnn.ops.runtime import threads
from legnn.ops.runtime.jit import kernel


@pytest.fixture(params=["OpenMP", "pool"])
def _both_ways(request, monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    if request.param == "pool":
        monkeypatch.setattr(threads, "openmp_parallel", lambda: None)
    elif sys.platform == "linux":
        assert threads.openmp_parallel() is not None, "PyTorch's own threads are there to be used"
    yield
    torch.set_num_threads(before)


@kernel
def _count(begin, end, out):
    for i in range(begin, end):
        out[i] += 1


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("cuts", [[0, 5, 5, 9, 100], list(range(101)), [0, 100]])
def test_every_part_is_done_once(cuts):
    out = np.zeros(100, np.int64)
    threads.run_parallel(_count, cuts, threads.SMALL, out)
    assert (out == 1).all()


@pytest.mark.usefixtures("_both_ways")
def test_several_threads_take_part():
    seen, together = set(), threading.Barrier(3, timeout=20)

    def meet(begin, end):
        seen.add(threading.get_ident())
        together.wait()

    threads.run_parallel(meet, [0, 1, 2, 3], threads.SMALL)
    assert len(seen) == 3


@pytest.mark.usefixtures("_both_ways")
def test_what_goes_wrong_in_a_part_is_raised():
    def fail(begin, end):
        raise ZeroDivisionError(begin)

    with pytest.raises(ZeroDivisionError):
        threads.run_parallel(fail, range(10), threads.SMALL)
    out = np.zeros(10, np.int64)
    threads.run_parallel(_count, range(11), threads.SMALL, out)
    assert (out == 1).all(), "and the threads go on working"


def test_little_work_is_done_where_it_is_asked_for():
    seen = []
    threads.run_parallel(
        lambda begin, end: seen.append((begin, end, threading.get_ident())), [0, 1, 2], threads.SMALL - 1
    )
    assert seen == [(0, 2, threading.get_ident())]
