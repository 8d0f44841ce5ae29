"""CUDA graphs: every call is one real step, the results are those without them, and there is a way back."""

import gc
import warnings
import weakref
from typing import Any, Literal, NamedTuple

import pytest
import torch
from legnn.training.sharing import finish
from tests.graphs import small_data

from legnn.config import SelfTrainingSettings
from legnn.datasets import load
from legnn.errors import InputError
from legnn.nn import LEGNN, ModelSettings
from legnn.training import ASTrain, EpochLog, FullBatch, Objective, Task, Trainer, full_batch, make_adam
from legnn.training.cuda_graph import WARM_UP, CudaGraphs, Replay

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def gpu(test):
    """Needs a CUDA device."""
    skip = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    return pytest.mark.gpu(skip(test))


class Recorded:
    """Stands in for a captured graph: it does on the CPU what a replay does on a GPU."""

    def __init__(self, step) -> None:
        self.replay = step


class Pretended(CudaGraphs):
    """CUDA graphs without a GPU, which may refuse to capture."""

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__(CPU)
        self.enabled, self.refuses, self.watched, self.captured = True, refuses, [], 0

    def warm_up(self, step, *, watch):
        self.watched.append(watch)
        return step()

    def capture(self, step):
        if self.refuses:
            self.give_up("it was asked to")
            return None
        self.captured += 1
        return Recorded(step)


class Counter:
    """A step that counts how often it was really taken."""

    def __init__(self) -> None:
        self.taken = torch.zeros(2, dtype=torch.float64)

    def __call__(self) -> torch.Tensor:
        self.taken += 1
        return self.taken * 10


def test_every_call_is_one_step_before_the_capture_and_after():
    graphs, step = Pretended(), Counter()
    replay = Replay(graphs)
    seen = [replay.run(step).tolist() for _ in range(8)]
    assert seen == [[10.0 * n] * 2 for n in range(1, 9)]
    assert graphs.captured == 1
    assert graphs.watched == [False] * (WARM_UP - 1) + [True], "the last step before the capture is watched"


def test_what_a_captured_step_gives_is_always_the_same_tensor():
    replay, step = Replay(Pretended()), Counter()
    for _ in range(WARM_UP):
        replay.run(step)
    assert replay.run(step) is replay.run(step)


def test_a_step_that_cannot_be_captured_is_run_once_in_every_call_and_that_is_said_once():
    graphs, step = Pretended(refuses=True), Counter()
    one, other = Replay(graphs), Replay(graphs)
    with pytest.warns(RuntimeWarning, match="not captured as a CUDA graph, because it was asked to; results are the"):
        seen = [one.run(step).tolist()[0] for _ in range(WARM_UP + 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen += [replay.run(step).tolist()[0] for replay in (one, other, one, other)]
    assert seen == [10.0 * n for n in range(1, len(seen) + 1)]


def test_once_given_up_nothing_that_was_captured_is_replayed():
    graphs, step = Pretended(), Counter()
    replay = Replay(graphs)
    for _ in range(WARM_UP + 1):
        replay.run(step)
    kept = replay.run(step)
    with pytest.warns(RuntimeWarning):
        graphs.give_up("of another step")
    assert replay.run(step) is not kept
    assert step.taken.tolist() == [WARM_UP + 3] * 2


def test_on_the_cpu_there_are_none():
    assert not CudaGraphs(CPU).enabled


def make(
    device: torch.device,
    *,
    as_train: bool = False,
    selection: bool = True,
    cuda_graphs: bool = True,
    epochs: int = 12,
    cosine_steps: int | Literal["epochs"] = "epochs",
    **options,
) -> Trainer:
    """A small run with everything in it that draws numbers or keeps statistics."""
    torch.manual_seed(0)
    data = load(small_data(nodes=120))
    chosen = {"hidden": 16, "layers": 3, "norm": "batch", "residual": "linear", "dropout": 0.5, "input_dropout": 0.2}
    settings = ModelSettings(**{**chosen, "label_at_input": True, **options})
    model = LEGNN(data.x.size(1), 3, settings).to(device)
    task = Task.from_graph(data, device)
    optimizer = make_adam(model.parameter_groups(0.01), 0.01)
    generator = torch.Generator(device).manual_seed(3)
    rule = ASTrain(SelfTrainingSettings(threshold=0.3, delta=3.0)) if as_train else None
    objective = Objective(alpha=0.5, selection=selection, uses_labels=model.uses_labels, rule=rule)
    batching = FullBatch(model, task, objective, optimizer, generator, cuda_graphs=cuda_graphs)
    return Trainer(batching, lr=0.01, epochs=epochs, patience=100, cosine_steps=cosine_steps)


class Course(NamedTuple):
    """What a run did, and the state it ended in, random generators and all."""

    logs: list[EpochLog]
    captured: list[bool]
    """Of each epoch: whether it was replayed."""
    tensors: dict[str, torch.Tensor]
    meta: dict[str, Any]


def go_on(trainer: Trainer, upto: int | None = None) -> Course:
    """Train on, up to an epoch, after which nothing is in flight."""
    logs, captured = [], []

    def after_epoch(log: EpochLog) -> None:
        logs.append(log)
        captured.append(trainer.batching.ring is not None)

    finish(trainer.steps(after_epoch, wants_rest=lambda: upto is not None, at_rest=lambda: trainer.epoch == upto))
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


@pytest.mark.parametrize("as_train", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_is_captured_once_and_what_it_reads_and_writes_stays_in_its_place(monkeypatch, kind, as_train):
    plain = begin(make(CPU, as_train=as_train, **kind))
    made = []
    monkeypatch.setattr(full_batch, "CudaGraphs", lambda *_, **__: made.append(Pretended()) or made[-1])
    monkeypatch.setattr(full_batch, "reads_lr_from_device", lambda _: True)
    pretended = begin(make(CPU, as_train=as_train, **kind))
    assert pretended.captured == [False] * WARM_UP + [True] * (12 - WARM_UP)
    assert [graphs.captured for graphs in made] == [1, 0], "once, and none is left when training is over"
    assert pretended.logs == plain.logs
    assert_same_end(pretended, plain)


@gpu
@pytest.mark.parametrize("as_train", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
def test_a_run_is_the_same_to_the_bit_with_graphs_and_without(backbone, kind, as_train):
    options = {"backbone": backbone, "as_train": as_train, **kind}
    one = begin(make(CUDA, **options))
    other = begin(make(CUDA, cuda_graphs=False, **options))
    assert one.captured == [False] * WARM_UP + [True] * (12 - WARM_UP)
    assert other.captured == [False] * 12
    assert one.logs == other.logs
    assert_same_end(one, other)


@gpu
@pytest.mark.parametrize("cuda_graphs", [False, True])
@pytest.mark.parametrize("as_train", [False, True])
def test_an_epoch_never_synchronizes_before_its_numbers_are_read(as_train, cuda_graphs):
    trainer = make(CUDA, as_train=as_train, cuda_graphs=cuda_graphs)

    def epochs(first: int, last: int) -> None:
        for epoch in range(first, last + 1):
            trainer.batching.set_lr(0.01 / epoch)
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
    with pytest.warns(RuntimeWarning, match="because it synchronizes with the GPU"):
        one = begin(trainer)
    other = begin(make(CUDA, cuda_graphs=False))
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
    other = begin(make(CUDA, cuda_graphs=False))
    assert one.logs == other.logs
    assert_same_end(one, other)
    torch.cuda.empty_cache()
    later = begin(make(CUDA))
    assert later.captured[-1], "a later run in the same process is captured again"
    assert_same_end(later, other)


@gpu
def test_an_optimizer_whose_learning_rate_a_captured_step_would_not_see_is_not_captured():
    trainer = make(CUDA)
    plain = torch.optim.Adam(trainer.model.parameters(), lr=0.01)
    trainer.optimizer = trainer.batching.optimizer = plain
    with pytest.warns(RuntimeWarning, match="keeps the learning rate on the host"):
        trainer.batching.reset()
    assert begin(trainer, upto=WARM_UP + 2).captured == [False] * (WARM_UP + 2)


@gpu
def test_logits_are_the_callers_own_and_follow_the_model():
    trainer = make(CUDA)
    batching, shown = trainer.batching, trainer.shown_at_inference
    seen = [batching.all_logits(shown) for _ in range(WARM_UP + 2)]
    assert all(torch.equal(seen[0], later) for later in seen)
    batching.train_epoch(1)
    after = batching.all_logits(shown)
    assert not torch.equal(after, seen[-1])
    plain = make(CUDA, cuda_graphs=False)
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
    with pytest.raises(InputError, match=rf"not written on this kind of device \({read.type}\).*`device={read.type}`"):
        other.load_state(cut.tensors, cut.meta)
    assert all(torch.equal(before[name], value) for name, value in other.state()[0].items())
