"""Freed memory stays with a process that asks for it."""

import subprocess
import sys

import pytest

STEPS = """
import resource, sys, torch
from legnn.ops.runtime.allocation import keep_freed_memory

torch.set_num_threads(1)
assert sys.argv[1] == "no" or keep_freed_memory()


def step():
    # blocks that have pages of their own unless the process keeps them
    return sum(float(one[0, 0]) for one in [torch.ones(1000, 1000) for _ in range(20)])


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


step()
before = faults()
step()
print(faults() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs GNU's C library")
def test_the_second_step_gets_fewer_new_pages():
    found = [
        int(subprocess.run([sys.executable, "-c", STEPS, word], check=True, capture_output=True).stdout)
        for word in ("yes", "no")
    ]
    assert found[0] < found[1] / 2
