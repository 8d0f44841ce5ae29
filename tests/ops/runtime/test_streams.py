"""Small launches beside a large one: both are finished for what follows, and no bit of a run depends on it."""

import gc
import weakref

import pytest
import torch
from tests.training.test_cuda_graph import CUDA, assert_same_end, begin, gpu, make

from legnn.ops.runtime import streams
from legnn.ops.runtime.streams import run_beside


def test_the_large_part_is_called_first_so_that_draws_keep_their_order():
    called = []
    found = run_beside(torch.zeros(1), lambda: called.append("large") or 1, lambda: called.append("small") or 2)
    assert found == (1, 2)
    assert called == ["large", "small"]


def test_what_autograd_saves_beside_is_freed_without_a_gradient():
    with streams._kept_for(None):
        out = torch.ones(2, requires_grad=True).exp()
    held = weakref.ref(out)
    gc.disable()
    try:
        del out
        assert held() is None
    finally:
        gc.enable()


@gpu
def test_both_parts_have_ended_for_what_follows():
    x = torch.randn(4096, 4096, device=CUDA, dtype=torch.float64)
    expected = x @ x, x.sum(0)
    for _ in range(10):
        (large, inner), small = run_beside(
            x, lambda: run_beside(x, lambda: x @ x, lambda: x.sum(0)), lambda: (x @ x).clone()
        )
        assert torch.equal(large + small, 2 * expected[0])
        assert torch.equal(inner, expected[1])


@gpu
def test_what_runs_beside_a_part_has_another_stream_than_what_runs_beside_all():
    x = torch.zeros(1, device=CUDA)

    def stream():
        return torch.cuda.current_stream(CUDA)

    (own, inner), outer = run_beside(x, lambda: run_beside(x, stream, stream), stream)
    assert own == stream()
    assert len({own, inner, outer}) == 3
    assert outer.priority < own.priority


@gpu
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
@pytest.mark.parametrize("cuda_graphs", [False, True])
def test_a_run_is_to_the_bit_what_it_is_on_one_stream(backbone, cuda_graphs, monkeypatch):
    options = {"backbone": backbone, "labels": "enhanced", "cuda_graphs": cuda_graphs}
    beside = begin(make(CUDA, **options))
    monkeypatch.setattr(streams, "_nested", streams._OfThread())
    monkeypatch.setattr(streams, "_side_stream", lambda stream, depth: stream)
    assert_same_end(beside, begin(make(CUDA, **options)))
