"""Which implementation of an operation runs: by device and dtype, or as `LEGNN_BACKEND` says."""

import subprocess
import sys

import pytest
import torch

from legnn.errors import InputError
from legnn.ops import backend as registry
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
def test_cuda_uses_triton_and_without_triton_warns_once_and_uses_plain_pytorch(operation, monkeypatch):
    device = torch.device("cuda")
    assert implementation(operation, device) == "gpu"
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    registry._has_triton.cache_clear()
    registry._module.cache_clear()
    try:
        with pytest.warns(UserWarning, match="Triton is missing") as found:
            assert [implementation(operation, device) for _ in range(2)] == ["reference"] * 2
        assert len(found) == 1
    finally:
        registry._has_triton.cache_clear()
        registry._module.cache_clear()


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
