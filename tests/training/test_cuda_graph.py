"""CUDA graphs: every call is one step, the results are those without them, and there is a way back."""

import gc
import weakref
from typing import Any, Literal, NamedTuple

import pytest
import torch
from tests.backbones import PLAIN
from tests.graphs import small_data
from tests.named import model_settings

from legnn.config import SelfTrainingSettings
from legnn.datasets import load
from legnn.errors import InputError
from legnn.nn import LEGNN
from legnn.runs.device import hardware
from legnn.training import ASTrain, EpochLog, FullBatch, Objective, Task, Trainer, make_adam
from legnn.training.cuda_graph import WARM_UP, CapturedStep, GraphCapture, recover_from_failed_capture
from legnn.training.optimizer import set_lr

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def gpu(test):
    """Needs a CUDA device."""
    skip = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    return pytest.mark.gpu(skip(test))


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
def test_after_a_failed_capture_the_generators_draw_again_with_any_pytorch(monkeypatch, pytorch):
    graph, generator, own = Graph(), Generator(), Generator()
    monkeypatch.setattr(torch.cuda, "default_generators", [None, generator])
    calls = pytorch(monkeypatch)
    recover_from_failed_capture(graph, (0, 3), 1, [own])
    assert graph.was_reset
    assert generator.state == own.state == "of its own"
    if pytorch is as_expected:
        assert calls == [("_cuda_endAllocateToPool", 1, (0, 3)), ("_cuda_releasePool", 1, (0, 3))]


def test_without_capture_every_call_is_one_step():
    steps = CapturedStep(GraphCapture(CPU, enabled=False))
    taken = torch.zeros(2)
    seen = [steps.run(lambda: taken.add_(1)).tolist() for _ in range(WARM_UP + 3)]
    assert seen == [[float(k)] * 2 for k in range(1, WARM_UP + 4)]
    assert not steps.is_captured


@gpu
def test_every_call_is_one_step_before_the_capture_and_after():
    steps = CapturedStep(GraphCapture(CUDA, enabled=True))
    taken = torch.zeros(2, device=CUDA)
    seen, captured = [], []
    for _ in range(WARM_UP + 3):
        seen.append(steps.run(lambda: taken.add_(1) * 10).tolist())
        captured.append(steps.is_captured)
    assert seen == [[10.0 * k] * 2 for k in range(1, WARM_UP + 4)]
    assert captured == [False] * WARM_UP + [True] * 3


def make(
    device: torch.device,
    *,
    as_train: bool = False,
    selection: bool = True,
    capture: bool | None = None,
    epochs: int = 12,
    cosine_steps: int | Literal["epochs"] = "epochs",
    **options,
) -> Trainer:
    """A small run with everything in it that draws numbers or keeps statistics."""
    torch.manual_seed(0)
    capture = device == CUDA if capture is None else capture
    data = load(small_data(nodes=120))
    chosen = {"hidden": 16, "layers": 3, "norm": "batch", "residual": "linear", "dropout": 0.5, "input_dropout": 0.2}
    settings = model_settings(**{**chosen, "label_at_input": True, **options})
    model = LEGNN(data.x.size(1), 3, settings).to(device)
    task = Task.from_graph(data, device)
    optimizer = make_adam(model.parameter_groups(0.01), 0.01, capture=capture)
    generator = torch.Generator(device).manual_seed(3)
    rule = ASTrain(SelfTrainingSettings(pseudo_label_threshold=0.3, delta=3.0)) if as_train else None
    objective = Objective(alpha=0.5, selection=selection, uses_labels=model.uses_labels, rule=rule)
    batching = FullBatch(model, task, objective, optimizer, generator, capture=capture)
    return Trainer(
        batching,
        lr=0.01,
        epochs=epochs,
        patience=100,
        cosine_steps=cosine_steps,
        generators=hardware(device).generators(),
    )


class Course(NamedTuple):
    """What a run did, and the state it ended in, random generators and all."""

    logs: list[EpochLog]
    captured: list[bool]
    """After each epoch: whether the next is a replay."""
    tensors: dict[str, torch.Tensor]
    meta: dict[str, Any]


def go_on(trainer: Trainer, upto: int | None = None) -> Course:
    """Train on, up to an epoch."""
    logs, captured = [], []

    def after_epoch(log: EpochLog) -> bool:
        logs.append(log)
        captured.append(trainer.batching._training.is_captured)
        return log.epoch == upto

    trainer.fit(after_epoch)
    tensors, meta = trainer.state()
    return Course(logs, captured, {name: value.detach().cpu().clone() for name, value in tensors.items()}, meta)


def begin(trainer: Trainer, upto: int | None = None) -> Course:
    """Train from the start, up to an epoch."""
    torch.manual_seed(5)
    return go_on(trainer, upto)


def assert_same_end(one: Course, other: Course) -> None:
    assert one.meta == other.meta
    assert one.tensors.keys() == other.tensors.keys()
    assert [name for name, value in one.tensors.items() if not torch.equal(value, other.tensors[name])] == []


def test_a_run_is_freed_as_soon_as_nobody_holds_it():
    trainer = make(CPU, epochs=2)
    begin(trainer)
    batching = weakref.ref(trainer.batching)
    gc.collect()
    gc.disable()
    try:
        del trainer
        assert batching() is None, "a cycle would hold a graph's memory until Python looks for cycles"
    finally:
        gc.enable()


KINDS = [
    {"labels": "enhanced"},
    {"labels": "enhanced", "selection": False},
    {"labels": "vanilla"},
    {"labels": "enhanced", "cosine_steps": 7},
]


@gpu
@pytest.mark.parametrize("as_train", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backbone", PLAIN)
def test_a_run_is_the_same_to_the_bit_with_graphs_and_without(backbone, kind, as_train):
    options = {"backbone": backbone, "as_train": as_train, **kind}
    one = begin(make(CUDA, **options))
    other = begin(make(CUDA, capture=False, **options))
    assert one.captured == [False] * WARM_UP + [True] * (12 - WARM_UP)
    assert other.captured == [False] * 12
    assert one.logs == other.logs
    assert_same_end(one, other)


@gpu
@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("as_train", [False, True])
def test_an_epoch_never_synchronizes_before_its_numbers_are_read(as_train, capture):
    trainer = make(CUDA, as_train=as_train, capture=capture)

    def epochs(first: int, last: int) -> None:
        for epoch in range(first, last + 1):
            set_lr(trainer.optimizer, 0.01 / epoch)
            trainer.batching.train_epoch(epoch)
            trainer.batching.validate(trainer.shown_at_inference)

    # what is created once may synchronize, and so may the capture
    epochs(1, WARM_UP + 1)
    torch.cuda.set_sync_debug_mode("error")
    try:
        epochs(WARM_UP + 2, WARM_UP + 5)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@gpu
def test_a_step_that_synchronizes_is_run_without_graphs_and_says_so():
    trainer = make(CUDA)
    trainer.model.register_forward_hook(lambda module, inputs, out: float(out.sum()) and None)
    with pytest.warns(RuntimeWarning, match="not captured as a CUDA graph"):
        one = begin(trainer)
    other = begin(make(CUDA, capture=False))
    assert one.logs == other.logs
    assert_same_end(one, other)


@gpu
def test_a_capture_that_breaks_off_is_recovered_from_and_said():
    trainer = make(CUDA)

    def wait_in_capture(module, inputs, out) -> None:
        # nothing but the capture itself notices this one
        if torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize()

    trainer.model.register_forward_hook(wait_in_capture)
    with pytest.warns(RuntimeWarning, match="not captured as a CUDA graph"):
        one = begin(trainer)
    other = begin(make(CUDA, capture=False))
    assert one.logs == other.logs
    assert_same_end(one, other)
    torch.cuda.empty_cache()
    later = begin(make(CUDA))
    assert later.captured[-1], "a later run in the same process is captured again"
    assert_same_end(later, other)


@gpu
def test_logits_are_the_callers_own_and_follow_the_model():
    trainer = make(CUDA)
    batching, shown = trainer.batching, trainer.shown_at_inference
    seen = [batching.all_logits(shown) for _ in range(WARM_UP + 2)]
    assert all(torch.equal(seen[0], later) for later in seen)
    batching.train_epoch(1)
    after = batching.all_logits(shown)
    assert not torch.equal(after, seen[-1])
    plain = make(CUDA, capture=False)
    plain.model.load_state_dict(trainer.model.state_dict())
    assert torch.equal(plain.batching.all_logits(shown), after)


@gpu
@pytest.mark.parametrize("after", [2, WARM_UP + 3])
def test_on_a_gpu_a_run_that_goes_on_from_a_state_equals_the_one_that_was_not_cut_off(after):
    whole = begin(make(CUDA, as_train=True))
    trainer = make(CUDA, as_train=True)
    cut = begin(trainer, upto=after)
    for _ in range(WARM_UP + 2):  # captured, and gone astray
        trainer.batching.train_epoch(1)
    for goes_on in (make(CUDA, as_train=True), trainer):
        goes_on.load_state(cut.tensors, cut.meta)
        rest = go_on(goes_on)
        assert rest.logs == whole.logs[len(cut.logs) :]
        assert_same_end(rest, whole)


@gpu
@pytest.mark.parametrize(("written", "read"), [(CPU, CUDA), (CUDA, CPU)])
def test_a_state_of_another_device_is_refused_and_changes_nothing(written, read):
    cut = begin(make(written), upto=2)
    other = make(read)
    before = {name: value.clone() for name, value in other.state()[0].items()}
    with pytest.raises(
        InputError, match=rf"not written on this kind of device \({read.type}\).*`train.device={read.type}`"
    ):
        other.load_state(cut.tensors, cut.meta)
    assert all(torch.equal(before[name], value) for name, value in other.state()[0].items())
