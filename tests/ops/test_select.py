"""Which kernels the operations use, and that the result does not depend on threads or chance."""

import importlib
import subprocess
import sys
from functools import partial

import pytest
import torch
from tests.ops.forms import FORMS, GPU, to, using
from tests.ops.graphs import gradients, hub, random_graph, with_labels

from legnn import ops
from legnn.ops import AttentionConfig, Scales, select
from legnn.ops.norm_act_dropout import autograd
from legnn.ops.select import NUMBA, TRITON, kernels_for, kernels_for_device


def test_float32_and_bfloat16_use_the_kernels_of_the_device_and_all_else_the_reference():
    assert kernels_for(torch.zeros(1, dtype=torch.float64)) is None
    assert kernels_for(torch.zeros(1, dtype=torch.float32)) is NUMBA
    assert kernels_for(torch.zeros(1, dtype=torch.bfloat16)) is NUMBA
    assert kernels_for(torch.zeros(1, device="meta")) is None
    assert kernels_for_device(torch.device("cpu")) is NUMBA


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="needs a CUDA device")
def test_a_gpu_uses_triton():
    assert kernels_for(torch.zeros(1, device="cuda")) is TRITON


def test_a_gpu_without_triton_warns_once_and_uses_the_reference(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    select.has_triton.cache_clear()
    try:
        with pytest.warns(UserWarning, match="Triton is missing") as found:
            assert [kernels_for_device(torch.device("cuda")) for _ in range(2)] == [None, None]
        assert len(found) == 1
    finally:
        select.has_triton.cache_clear()


def test_importing_the_operations_loads_neither_compiler():
    code = "import sys, legnn.ops; sys.exit(any(name in sys.modules for name in ('numba', 'triton.language')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("form", [form for form in FORMS if GPU or form.id == "numba"])
def test_the_same_input_gives_the_same_bits(form):
    # in the interpreter, where one program runs after the other, this would say nothing
    kernels, device = form
    graph = to(with_labels(hub(10_000, torch.float32, weighted=False)), device)
    x = torch.randn(graph.num_nodes, 20, device=device, requires_grad=True)
    rows = torch.randn(5, 12, device=device, requires_grad=True)
    target = torch.randn(5, 3, device=device, requires_grad=True)
    config = AttentionConfig(12, 3, True, 0.2)

    def once():
        with using(kernels):
            out = ops.attend(graph, x, rows, target, None, Scales(), config, update_labels=True)
        seed = torch.tensor([1, 2]).to(device)
        norm = torch.nn.BatchNorm1d(12).to(device)
        nodes = autograd.apply_norm_act_dropout(kernels, out.nodes, norm, 0.5, seed)
        return [nodes, out.labels, *gradients([nodes, out.labels], [x, rows, target])]

    for first, second in zip(once(), once(), strict=True):
        assert torch.equal(first, second)


def test_the_number_of_threads_does_not_change_a_bit():
    graph = with_labels(random_graph(3000, 30_000, torch.float32, weighted=False))
    x, norm = torch.randn(3000, 64), partial(torch.nn.BatchNorm1d, 64)
    found = []
    threads = torch.get_num_threads()
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        nodes, sums = ops.propagate_messages(graph, x, None, None, Scales(), update_labels=True)
        out = autograd.apply_norm_act_dropout(NUMBA, nodes, norm(), 0.5, torch.tensor([1, 2]))
        found.append((nodes, sums, out))
    torch.set_num_threads(threads)
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))
