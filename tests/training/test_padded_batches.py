"""Mini-batches padded to fixed sizes, and their steps as CUDA graphs."""

import gc
import weakref

import pytest
import torch
from tests.graphs import small_data
from tests.training.mini_batches import CPU, NoStep, make, mini_batch

from legnn.config import SelfTrainingSettings
from legnn.datasets import load
from legnn.graph import SamplingOptions
from legnn.graph.padding import SampleSizes
from legnn.runs.device import register_pinned
from legnn.training import ASTrain, DevicePlan, Task, Trainer, can_capture, make_adam
from legnn.training import batches as batches_module
from legnn.training import prefetch as prefetch_module
from legnn.training.batches import BatchSpec, tensors_of
from legnn.training.padded_batches import SIZE_FACTORS, Padding
from legnn.training.prefetch import map_ahead
from legnn.training.ranks import SINGLE_PROCESS, Ranks

GPU = torch.device("cuda")


def on_a_gpu(test):
    skip = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    return pytest.mark.gpu(skip(test))


AS_TRAIN = ASTrain(SelfTrainingSettings(pseudo_label_threshold=0.34, delta=0.1))


def test_an_epoch_of_padded_batches_has_the_gradients_of_one_without_padding():
    found = []
    for pad in (False, True):
        model, task = make("enhanced", nodes=200, norm="batch")
        parts = mini_batch(model, task, 16, [4, 3], rule=AS_TRAIN, pad=pad)
        padded = [batch.is_padded for batch in parts._batches(task.show(task.train[20:]), *seeds(task), 1)]
        assert padded == [pad]
        found.append((parts.train_epoch(1), parts.optimizer.seen))
    (metrics, gradients), (other_metrics, other_gradients) = found
    assert len(gradients) == len(other_gradients) > 1
    for one, other in zip(gradients, other_gradients, strict=True):
        for name, value in one.items():
            torch.testing.assert_close(other[name], value, rtol=1e-4, atol=1e-6, msg=name)
    for name, value in metrics.items():
        torch.testing.assert_close(other_metrics[name], value, rtol=1e-5, atol=1e-6, equal_nan=True, msg=name)


def seeds(task: Task) -> tuple[torch.Tensor, torch.Tensor]:
    return task.train[:10], task.candidates[:4]


def test_sizes_do_not_depend_on_what_was_drawn_before():
    plans = []
    for epochs in (0, 3):
        model, task = make("enhanced", nodes=200)
        parts = mini_batch(model, task, 16, [4, 3], pad=True)
        for epoch in range(epochs):
            parts.train_epoch(epoch + 1)
        planned = {}
        nodes, nobody = task.train[:16], task.train[:0]
        Padding(parts._probe, planned).plan(BatchSpec(nodes, nodes, True, nobody, (0, 0)))
        plans.append(planned)
        drawn = next(iter(parts._batches(task.show(task.train[20:]), *seeds(task), 1)))
        assert drawn.is_padded
    assert plans[0] == plans[1]
    assert [len(sizes) for sizes in plans[0].values()] == [len(SIZE_FACTORS)]


def test_a_batch_that_no_planned_size_holds_is_not_padded():
    model, task = make("enhanced", nodes=200, norm="batch")
    parts = mini_batch(model, task, 16, [4, 3], pad=True)
    parts._planned[32, 32] = [sizes(parts)._replace(edges=(1, 1))]
    batch = next(iter(parts._batches(task.show(task.train[20:]), *seeds(task), 1)))
    assert not batch.is_padded


def sizes(parts) -> SampleSizes:
    return SampleSizes.from_sample(next(iter(parts._probe(10, 4))))


def test_the_shapes_of_an_epoch_are_few():
    model, task = make("enhanced", nodes=400)
    parts = mini_batch(model, task, 16, [4, 3], pad=True)
    shapes = set()
    for batch in parts._batches(task.show(task.train[100:]), task.train[:100], task.train[:0], 7):
        shapes.add(tuple(tensor.shape for tensor in tensors_of(batch)))
    # 100 nodes in 7 batches: of 14 and of 15
    assert len(shapes) == 2


@pytest.mark.parametrize(
    "options", [{}, {"shows_predicted": True}, {"label_features": "class-mean"}, {"pad": False}], ids=str
)
def test_batches_that_several_threads_sample_are_the_same_to_the_bit(options, monkeypatch):
    """The threads of a GPU, without their streams: batches read nothing that another one writes."""
    given = dict(options)
    pad, shows_predicted = given.pop("pad", True), given.pop("shows_predicted", False)

    def epoch(plan: DevicePlan) -> list[list[torch.Tensor]]:
        model, task = make("enhanced", nodes=400, **given)
        parts = mini_batch(model, task, 8, [4, 3], pad=pad, plan=plan)
        if shows_predicted:
            parts.objective = type(parts.objective)(alpha=0.5, uses_labels=True, selection=False)
            assert parts.objective.shows_predicted
        shown = task.train if shows_predicted else task.train[100:]
        # of two sizes, which are planned apart
        found = parts._batches(task.show(shown), task.train[:98], task.candidates[:33], 3)
        return [tensors_of(batch) for batch in found]

    alone = epoch(DevicePlan())

    def in_threads(prepare, items, device, tensors):
        return map_ahead(prepare, items, 3)

    monkeypatch.setattr(batches_module, "prefetch", in_threads)
    together = epoch(DevicePlan(streams=True))
    assert len(alone) == len(together) == 3
    for one, other in zip(alone, together, strict=True):
        assert all(map(torch.equal, one, other))
        assert len(one) == len(other)


def test_padded_mini_batches_are_freed_as_soon_as_nobody_holds_them():
    model, task = make("enhanced", nodes=60)
    parts = mini_batch(model, task, 8, [3, 2], pad=True)
    parts.train_epoch(1)
    held = weakref.ref(parts)
    gc.collect()
    gc.disable()
    try:
        del parts
        assert held() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("options", [{"backbone": "gatv2"}, {"backbone": "gin"}])
def test_a_model_that_may_synchronize_is_not_padded(options):
    model = make("enhanced", **options)[0]
    assert not can_capture(model, SamplingOptions([4, 3]), None, SINGLE_PROCESS)


def test_what_can_be_captured_has_bounded_fanouts_and_no_exchange_in_the_middle_of_a_step():
    model = make("enhanced")[0]
    assert can_capture(model, SamplingOptions([4, 3]), AS_TRAIN, SINGLE_PROCESS)
    assert not can_capture(model, SamplingOptions([4, None]), None, SINGLE_PROCESS)
    assert can_capture(model, SamplingOptions([4, 3]), None, Ranks(0, 2))
    assert not can_capture(model, SamplingOptions([4, 3]), AS_TRAIN, Ranks(0, 2))


# -- on a GPU ------------------------------------------------------------------------------------------------------


def trainer(capture: bool, *, rule=None, epochs: int = 4, nodes: int = 300, selection: bool = True, **options):
    model, task = make(nodes=nodes, norm="batch", dropout=0.5, **options)
    task = on_gpu(nodes)
    model = model.to(GPU)
    adam = make_adam(model.parameter_groups(0.01), 0.01, capture=capture)
    plan = DevicePlan(capture=capture, streams=True, pin=True)
    parts = mini_batch(model, task, 16, [4, 3], adam, rule=rule, pad=True, plan=plan)
    parts.objective = type(parts.objective)(alpha=0.5, uses_labels=model.uses_labels, rule=rule, selection=selection)
    return Trainer(parts, lr=0.01, epochs=epochs, patience=100)


def on_gpu(nodes: int) -> Task:
    return Task.from_graph(load(small_data(nodes)), GPU)


def course(run: Trainer) -> tuple[list, dict[str, torch.Tensor]]:
    logs = []
    run.fit(lambda log: logs.append(log))
    return logs, {name: value.detach().cpu().clone() for name, value in run.state()[0].items()}


KINDS = [
    {"backbone": "gcn"},
    {"backbone": "sage"},
    {"backbone": "gat"},
    {"backbone": "gcnii"},
    {"labels": "vanilla"},
    {"labels": "concat"},
    {"labels": "addition"},
    {"label_features": "class-mean"},
    {"rule": AS_TRAIN},
    {"rule": AS_TRAIN, "backbone": "gat"},
    {"selection": False},
    {"normalize": "joint"},
]


@on_a_gpu
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
def test_captured_steps_give_the_same_run_to_the_bit(kind):
    captured, plain = trainer(True, **kind), trainer(False, **kind)
    logs, state = course(captured)
    other_logs, other_state = course(plain)
    assert logs == other_logs
    assert [name for name, value in state.items() if not torch.equal(value, other_state[name])] == []


THREADED = [{}, {"selection": False}, {"label_features": "class-mean", "selection": False}]


@on_a_gpu
@pytest.mark.parametrize("kind", THREADED, ids=lambda kind: "-".join(kind) or "plain")
def test_several_threads_give_the_same_run_to_the_bit(kind, monkeypatch):
    found = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(prefetch_module, "THREADS", threads)
        found.append(course(trainer(True, **kind)))
    (logs, state), *others = found
    for other_logs, other_state in others:
        assert logs == other_logs
        assert [name for name, value in state.items() if not torch.equal(value, other_state[name])] == []


@on_a_gpu
def test_steps_are_captured_once_for_each_size():
    run = trainer(True)
    for _ in range(13):
        run.train_epoch()
    captured = run.batching._steps._captured
    assert 1 <= len(captured) <= 4
    assert all(one.step.is_captured for one in captured.values())
    before = {id(one) for one in captured.values()}
    run.train_epoch()
    assert {id(one) for one in captured.values()} == before


def drawn(run: Trainer, candidates: int = 0, steps: int = 7) -> list[list[torch.Tensor]]:
    """The tensors of some batches."""
    parts, found = run.batching, []
    parts.generator.manual_seed(5)
    task = parts.task
    shown = task.train[100:] if run.model.uses_labels else task.train[:0]
    for batch in parts._batches(task.show(shown), task.train[:100], task.candidates[:candidates], steps):
        assert batch.is_padded
        # read on the stream that trains, as a step does
        found.append([tensor.clone() for tensor in tensors_of(batch)])
    return found


@on_a_gpu
def test_whoever_stops_in_the_middle_of_an_epoch_changes_nothing_of_the_next():
    run, whole = trainer(True, nodes=600), trainer(True, nodes=600)
    for batches in (1, 2, 3):
        parts = run.batching
        some = iter(
            parts._batches(parts.task.show(parts.task.train[100:]), parts.task.train[:100], parts.task.train[:0], 7)
        )
        for _ in range(batches):
            next(some)
        some.close()
    for one, other in zip(drawn(run), drawn(whole), strict=True):
        assert all(map(torch.equal, one, other))


@on_a_gpu
def test_a_resumed_run_is_padded_and_goes_on_as_the_first_did():
    whole = trainer(True, epochs=6)
    logs, state = course(whole)
    first = trainer(True, epochs=6)
    first.fit(lambda log: log.epoch == 3)
    tensors, meta = first.state()
    kept = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    again = trainer(True, epochs=6)
    again.load_state({name: value.to(GPU) if "random" not in name else value for name, value in kept.items()}, meta)
    rest, other = course(again)
    assert rest == logs[3:]
    # the state of PyTorch's own generator is not what a resumed run of mini-batches reads
    read = [name for name in state if not name.startswith("random/c")]
    assert [name for name in read if not torch.equal(state[name], other[name])] == []


@on_a_gpu
def test_features_in_the_hosts_memory_give_the_same_run_to_the_bit():
    found = []
    for place in ("device", "pinned", "hot", "host"):
        run = trainer(True)
        task = run.batching.task
        x = task.x.cpu()
        if place != "device":
            changed = Task(**{**task.__dict__, "x": x})
            if place in ("pinned", "hot"):
                assert register_pinned(x)
            if place == "hot":
                changed = changed.with_hot_rows(x.nbytes // 3)
                assert changed.hot is not None
            run.batching.task = run.batching.inference.task = changed
        logs = []
        for _ in range(3):
            # not a number where there are no pseudo labels
            logs.append([f"{float(value)!r}" for value in run.train_epoch().values()])
        found.append(logs)
    assert found[0] == found[1] == found[2] == found[3]


def test_no_step_of_the_optimizer_is_lost():
    model, task = make("enhanced", nodes=100)
    parts = mini_batch(model, task, 8, [3, 2], NoStep(model), pad=True)
    parts.train_epoch(1)
    assert len(parts.optimizer.seen) == -(-(len(task.train) // 2) // 8)
    assert parts.device == CPU
