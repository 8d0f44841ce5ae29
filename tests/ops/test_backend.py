"""Which implementation of an operation runs: by device and dtype, or as `LEGNN_BACKEND` says."""

import subprocess
import sys

import pytest
import torch

from legnn.errors import InputError
from legnn.ops.backend import backend

OPERATIONS = ["propagate", "attention", "norm_act_dropout"]


def implementation(operation: str, like: torch.Tensor | torch.device) -> str:
    return backend(operation, like).__name__.removeprefix(f"legnn.ops.{operation}.")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_float32_and_bfloat16_use_kernels_and_every_other_dtype_or_device_plain_pytorch(operation):
    assert implementation(operation, torch.zeros(1)) == "cpu"
    assert implementation(operation, torch.zeros(1, dtype=torch.bfloat16)) == "cpu"
    assert implementation(operation, torch.device("cpu")) == "cpu"
    assert implementation(operation, torch.zeros(1, dtype=torch.float64)) == "reference"
    assert implementation(operation, torch.zeros(1, device="meta")) == "reference"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_cuda_uses_triton(operation):
    assert implementation(operation, torch.device("cuda")) == "gpu"


def test_cuda_without_triton_warns_once_and_uses_plain_pytorch():
    program = """
import sys, warnings, torch
sys.modules["triton"] = None
from legnn.ops.backend import backend
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    names = [backend("propagate", torch.device("cuda")).__name__ for _ in range(2)]
print(*names, *(warning.message for warning in found))
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    name = "legnn.ops.propagate.reference"
    assert done.stdout == f"{name} {name} Triton is missing: this GPU runs the slow reference operations\n"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_legnn_backend_reference_selects_plain_pytorch_everywhere(operation, monkeypatch):
    monkeypatch.setenv("LEGNN_BACKEND", "reference")
    assert implementation(operation, torch.zeros(1)) == "reference"
    assert implementation(operation, torch.device("cuda")) == "reference"


def test_an_unknown_legnn_backend_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setenv("LEGNN_BACKEND", "plain")
    with pytest.raises(InputError, match="LEGNN_BACKEND is 'plain'; set it to `reference`"):
        backend("propagate", torch.zeros(1))


def test_importing_the_operations_loads_neither_compiler():
    code = "import sys, legnn.ops; sys.exit(any(name in sys.modules for name in ('numba', 'triton.language')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
