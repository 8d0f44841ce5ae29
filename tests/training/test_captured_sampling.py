"""Batches sampled in turn into a few slots are those of every other sampler, to the bit.

Without a GPU: its kernels run in Triton's interpreter, and a captured sample is one that is drawn anew to where the
first was. `test_padded_batches` has the same on a GPU.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from tests.training.mini_batches import make, mini_batch

from legnn.config import SelfTrainingSettings
from legnn.graph.padding import SampleSizes
from legnn.ops import select
from legnn.training import ASTrain, padded_batches
from legnn.training.batches import Part, tensors_of
from legnn.training.captured_sampling import SLOTS, CapturedSampling

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are not interpreted")


def all_tensors(item: object) -> list[torch.Tensor]:
    """Those of an object, and those that are cached of it."""
    if isinstance(item, torch.Tensor):
        return [item]
    if isinstance(item, list | tuple):
        return [tensor for part in item for tensor in all_tensors(part)]
    if isinstance(item, dict):
        return all_tensors(list(item.values()))
    return all_tensors(vars(item)) if type(item).__module__.startswith("legnn") and hasattr(item, "__dict__") else []


class Graph:
    """A step that is run again, into the memory of its first run."""

    def __init__(self, step) -> None:
        self.step, self.found = step, step.__closure__
        self.kept = self.run()

    def run(self) -> list[torch.Tensor]:
        found = next(cell.cell_contents for cell in self.found if isinstance(cell.cell_contents, list))
        found.clear()
        self.step()
        return all_tensors(found[0])

    def replay(self) -> None:
        new = self.run()
        assert len(new) == len(self.kept)
        for into, values in zip(self.kept, new, strict=True):
            into.copy_(values)


class Graphs:
    enabled = True
    stream = SimpleNamespace(device=torch.device("cpu"), wait_event=lambda event: None, wait_stream=lambda other: None)

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.captured: list[Graph] = []

    def capture(self, step, *, keeps):
        assert keeps
        if self.fails:
            self.enabled = False
            return None
        self.captured.append(Graph(step))
        return self.captured[-1]


class Event:
    def __init__(self, *_, **__) -> None: ...
    def record(self, stream) -> None: ...
    def synchronize(self) -> None: ...


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    stream = SimpleNamespace(wait_stream=lambda other: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "Event", Event)
    # samples are numbered as on a GPU
    monkeypatch.setattr(select.NUMBA, "__dict__", {**select.NUMBA.__dict__, "sampler": select.TRITON.sampler})
    monkeypatch.setattr(CapturedSampling, "takes", lambda self, parts: self._graphs is not None)


def batches_of(graphs: Graphs | None, options=(), epochs: int = 2, steps: int = 5, rule=None):
    """The tensors of the batches of some epochs, whether each is in a slot, and what was cached of its graph."""
    model, task = make(nodes=120, **dict(options))
    parts = mini_batch(model, task, 16, [3, 2], rule=rule, pad=True)
    parts._sampling._graphs = graphs
    found, places = [], []
    for epoch in range(epochs):
        shown = task.train[10 + epoch : 40 + epoch]
        predicted = task.train[~torch.isin(task.train, shown)][:12]
        for batch in parts._batches(task.show(shown), predicted, task.candidates[:7], steps):
            found.append([tensor.clone() for tensor in tensors_of(batch)])
            places.append(batch.slot)
            # what a step would cache of it
            cached = batch.graph.blocks[0].adjacency.transposition.adjacency.rowptr, batch.graph.blocks[0].senders.count
            found[-1] += [tensor.clone() for tensor in cached]
    return found, places


def assert_same(one, other) -> None:
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        assert [(a.dtype, a.shape) for a in mine] == [(b.dtype, b.shape) for b in theirs]
        assert all(map(torch.equal, mine, theirs))


@pytest.mark.parametrize("options", [{}, {"label_features": "class-mean"}], ids=["plain", "class-mean"])
def test_batches_in_slots_are_those_of_other_memory_to_the_bit(as_on_a_gpu, options):
    graphs = Graphs()
    found, places = batches_of(graphs, options)
    assert None not in places
    # 12 nodes and 7 candidates in 5 steps: of three kinds
    assert SLOTS < len(set(places)) <= 3 * SLOTS
    assert len(graphs.captured) > 1
    assert_same(found, batches_of(None, options)[0])


def test_what_does_not_fit_is_sampled_again(as_on_a_gpu, monkeypatch):
    monkeypatch.setattr("legnn.graph.padding.MULTIPLE", 1)
    monkeypatch.setattr(padded_batches, "SEED_MULTIPLE", 1)
    monkeypatch.setattr(padded_batches, "ROOM", (0.8, 1.5, 9.0))
    found, places = batches_of(Graphs(), epochs=6)
    assert 0 < places.count(None) < len(places)
    assert_same(found, batches_of(None, epochs=6)[0])


def test_where_a_capture_fails_batches_are_the_same(as_on_a_gpu):
    found, places = batches_of(Graphs(fails=True))
    # the first of each slot is not captured
    assert None in places
    assert_same(found, batches_of(None)[0])


def test_labels_of_another_number_are_read_elsewhere(as_on_a_gpu):
    model, task = make(nodes=120)
    parts = mini_batch(model, task, 16, [3, 2], pad=True)
    parts._sampling._graphs = Graphs()
    other = mini_batch(model, task, 16, [3, 2], pad=True)
    for count in (30, 30, 20, 0):
        found, expected = (
            [
                tensors_of(batch)
                for batch in one._batches(task.show(task.train[20 : 20 + count]), task.train[:5], task.train[:0], 1)
            ]
            for one in (parts, other)
        )
        assert_same(found, expected)


def test_a_process_without_a_share_samples_as_elsewhere(as_on_a_gpu):
    model, task = make(nodes=120)
    parts = mini_batch(model, task, 16, [3, 2], pad=True)
    parts._sampling._graphs = Graphs()
    nodes, nobody = task.train[:3], task.train[:0]
    part = Part(nodes, nobody, nobody, nobody, nobody, (1, 2))
    assert part.seeds.tolist() == nodes[:1].tolist()
    assert part.num_planned == (1, 0)
    sizes = SampleSizes((), 0)
    assert parts._sampling._launch(part, torch.zeros(2, dtype=torch.long), sizes, parts._sampling._graphs) is None


def test_an_epoch_trains_the_same_to_the_bit(as_on_a_gpu):
    rule = ASTrain(SelfTrainingSettings(threshold=0.34, delta=0.1))
    gradients = []
    for graphs in (None, Graphs()):
        model, task = make(nodes=120, norm="batch")
        parts = mini_batch(model, task, 8, [3, 2], rule=rule, pad=True)
        parts._sampling._graphs = graphs
        for epoch in (1, 2):
            parts.train_epoch(epoch)
        gradients.append(parts.optimizer.seen)
    one, other = gradients
    assert len(one) == len(other) > 4
    for mine, theirs in zip(one, other, strict=True):
        assert all(torch.equal(value, theirs[name]) for name, value in mine.items())
