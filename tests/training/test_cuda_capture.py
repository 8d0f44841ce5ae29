"""What PyTorch does not promise: noticed where it is there, and done without where it is not."""

import warnings

import pytest
import torch

from legnn.training import cuda_capture
from legnn.training.cuda_capture import ignoring_uncaptured_steps, recover_from_failed_capture, run_watched


@pytest.fixture
def debug_mode(monkeypatch):
    """The debug mode of a pretended GPU, as it was set one time after the other."""
    modes = ["default"]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    return modes


@pytest.mark.parametrize(
    ("text", "synchronized"),
    [("called a synchronizing CUDA operation (Triggered internally at …)", True), ("in other words", False)],
)
def test_a_step_that_pytorch_warns_of_synchronized(debug_mode, text, synchronized):
    def step() -> int:
        assert debug_mode[-1] == "warn"
        warnings.warn(text, stacklevel=1)
        return 7

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_watched(step) == (7, synchronized)
    assert debug_mode == ["default", "warn", "default"]


def test_the_debug_mode_is_as_before_after_an_error(debug_mode):
    with pytest.raises(ZeroDivisionError):
        run_watched(lambda: 1 // 0)
    assert debug_mode[-1] == "default"


def test_of_optimizers_only_the_warning_about_the_capture_is_hidden():
    with warnings.catch_warnings(), ignoring_uncaptured_steps():
        warnings.filterwarnings("error", message="something else")
        warnings.warn("but step() is running without CUDA graph capture. If you never", stacklevel=1)
        with pytest.raises(UserWarning, match="something else"):
            warnings.warn("something else", stacklevel=1)


class Graph:
    """Stands in for a graph whose capture failed."""

    was_reset = False

    def reset(self) -> None:
        self.was_reset = True


class Generator:
    """Stands in for the generator of a GPU."""

    state = "registered with the capture"

    def clone_state(self) -> str:
        return "of its own"

    def graphsafe_set_state(self, state: str) -> None:
        self.state = state


def missing(monkeypatch) -> None:
    for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
        monkeypatch.delattr(torch._C, name, raising=False)


def other_arguments(monkeypatch) -> None:
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", lambda pool: None, raising=False)


def never_begun(monkeypatch) -> None:
    def refuse(device, pool):
        raise RuntimeError("no allocation to this pool")

    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", refuse, raising=False)


def as_expected(monkeypatch) -> list:
    calls = []
    for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
        monkeypatch.setattr(torch._C, name, lambda *given, name=name: calls.append((name, *given)), raising=False)
    return calls


@pytest.mark.parametrize("pytorch", [as_expected, missing, other_arguments, never_begun])
def test_after_a_failed_capture_the_generator_draws_again_with_any_pytorch(monkeypatch, pytorch):
    graph, generator = Graph(), Generator()
    monkeypatch.setattr(torch.cuda, "default_generators", [None, generator])
    monkeypatch.setattr(cuda_capture, "_FAILED", kept := [])
    calls = pytorch(monkeypatch)
    recover_from_failed_capture(graph, (0, 3), 1)
    assert graph.was_reset
    assert kept == [graph]
    assert generator.state == "of its own"
    if pytorch is as_expected:
        assert calls == [("_cuda_endAllocateToPool", 1, (0, 3)), ("_cuda_releasePool", 1, (0, 3))]
