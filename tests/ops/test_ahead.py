"""Kernels that are compiled before they are needed are those that training calls, with the types it calls them with."""

import subprocess
import sys

TRAINS_FIRST = """
import legnn
from legnn.ops.ahead import KERNELS

legnn.train("digits", hidden=16, epochs=2, device="cpu", precision="bf16")
for kernel, types in KERNELS:
    assert kernel.signatures == [types], (kernel, kernel.signatures, types)
"""


def test_training_compiles_the_same_by_itself():
    done = subprocess.run([sys.executable, "-c", TRAINS_FIRST], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
