"""Epochs in flight: nothing of a run depends on how many there were."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.test_cuda_graph import CPU, Pretended, make

from legnn.training import full_batch
from legnn.training.cuda_graph import WARM_UP
from legnn.training.in_flight import (
    BURSTS,
    FIRST,
    ROWS,
    ROWS_IN_TURNS,
    Burst,
    EpochRing,
    InFlight,
    Launched,
    ToHost,
)
from legnn.training.sharing import Group, Member, joined


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(2, 5), epochs=st.integers(1, 12))
def test_a_ring_holds_the_metrics_and_weights_of_the_last_epochs(rows, epochs):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    ring, seen = EpochRing(model, rows, 2), []
    for epoch in range(epochs):
        for value in model.state_dict().values():
            value.add_(epoch + 1)
        ring.count()
        ring.write(torch.tensor([epoch, -epoch], dtype=torch.double))
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
    for back in range(min(rows, epochs)):
        epoch, row = epochs - 1 - back, (ring.last - back) % rows
        assert ring.metrics().wait()[row].tolist() == [epoch, -epoch]
        held = ring.weights(row)()
        assert held.keys() == seen[epoch].keys()
        assert all(torch.equal(held[name], value) for name, value in seen[epoch].items())


def test_a_run_that_takes_turns_has_more_epochs_in_flight():
    rows = []

    def steps():
        rows.append(EpochRing.of(torch.nn.Linear(3, 2), 2).rows)
        yield

    next(steps())
    Member(CPU, 1, steps()).advance()
    assert rows == [ROWS, ROWS_IN_TURNS]


def test_weights_that_are_too_large_to_be_copied_in_every_epoch_have_no_ring(monkeypatch):
    monkeypatch.setattr("legnn.training.in_flight.RING_BYTES", 100)
    assert EpochRing.of(torch.nn.Linear(30, 30), 2) is None


def pretended(monkeypatch, **options):
    """A run on the CPU whose epochs are in flight as on a GPU."""
    monkeypatch.setattr(full_batch, "CudaGraphs", lambda *_, **__: Pretended())
    monkeypatch.setattr(full_batch, "reads_lr_from_device", lambda _: True)
    return make(CPU, **options)


def train(trainer, after_epoch=lambda log: None, **more):
    torch.manual_seed(5)
    logs, most = [], 0

    def note(log):
        nonlocal most
        logs.append(log)
        most = max(most, trainer.epoch - log.epoch)
        return after_epoch(log)

    for _ in trainer.steps(note, **more):
        pass
    return logs, most


@pytest.mark.parametrize("patience", [1, 2, 3, 7, 100])
def test_early_stopping_keeps_the_same_epoch_with_others_in_flight(monkeypatch, patience):
    plain = make(CPU, epochs=60)
    plain.stopper.patience = patience
    expected, _ = train(plain)
    ahead = pretended(monkeypatch, epochs=60)
    ahead.stopper.patience = patience
    logs, most = train(ahead)
    assert logs == expected
    assert (ahead.epoch, ahead.stopper) == (plain.epoch, plain.stopper)
    assert all(torch.equal(ahead.best[name], value) for name, value in plain.best.items())
    assert most >= FIRST or len(logs) < 2 * FIRST, "some were in flight"


@pytest.mark.parametrize("end", [2, 6, 9])
def test_a_run_that_is_told_to_end_does_so_with_that_epoch_whatever_is_in_flight(monkeypatch, end):
    plain = make(CPU, epochs=40)
    expected, _ = train(plain, lambda log: log.epoch == end)
    trainer, rests = pretended(monkeypatch, epochs=40), []
    logs, _ = train(trainer, lambda log: log.epoch == end, at_rest=lambda: rests.append(trainer.epoch))
    assert logs == expected
    assert (trainer.epoch, trainer.stopper) == (plain.epoch, plain.stopper)
    assert all(torch.equal(trainer.best[name], value) for name, value in plain.best.items())
    assert (end in rests) == (end <= WARM_UP), "with others in flight its state is not that of the last epoch"


@pytest.mark.parametrize("patience", [1, 3, 100])
def test_a_run_whose_bursts_are_there_some_turns_later_comes_to_the_same(monkeypatch, patience):
    plain = make(CPU, epochs=60)
    plain.stopper.patience = patience
    expected, _ = train(plain)
    # an epoch of a millisecond, a burst of which is there two turns later
    monkeypatch.setattr(ToHost, "seconds_since", lambda metrics, begin: 1e-3)
    asked = Counter()
    monkeypatch.setattr(ToHost, "is_there", property(lambda metrics: asked.update([metrics]) or asked[metrics] > 2))
    turns = pretended(monkeypatch, epochs=60)
    turns.stopper.patience = patience
    bursts, launch = [], turns._launch
    monkeypatch.setattr(turns, "_launch", lambda *given: bursts.append(launch(*given)) or bursts[-1])
    logs, most = train(turns)
    assert logs == expected
    assert (turns.epoch, turns.stopper) == (plain.epoch, plain.stopper)
    assert all(torch.equal(turns.best[name], value) for name, value in plain.best.items())
    assert max(len(burst.epochs) for burst in bursts) <= ROWS // BURSTS
    assert most < ROWS


def test_a_ring_is_never_written_where_an_epoch_in_flight_is_yet_to_be_read():
    for rows in range(2, 40):
        ring, flight = EpochRing(torch.nn.Linear(2, 2), rows, 2), InFlight(CPU)
        for _ in range(3):
            launched = 0
            while number := flight.room(ring):
                flight.add(Burst(None, [Launched(1, 0.1, 0)] * number, ToHost(torch.zeros(1))))
                launched += number
            assert 0 < launched <= rows
            flight.clear()
            flight._pace.seconds += 1e-3


def test_after_an_error_nothing_is_in_flight_any_more(monkeypatch):
    launched, waited = [], []
    add = InFlight.add
    monkeypatch.setattr(InFlight, "add", lambda flight, burst: launched.append(burst.metrics) or add(flight, burst))
    wait = ToHost.wait
    monkeypatch.setattr(ToHost, "wait", lambda metrics: waited.append(metrics) or wait(metrics))
    trainer = pretended(monkeypatch, epochs=40)

    def fail(log):
        if log.epoch == WARM_UP + 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(trainer, fail)
    assert trainer.epoch > WARM_UP + 1, "others were in flight"
    assert waited == launched


def test_a_rest_comes_when_it_is_wanted_and_never_with_an_epoch_in_flight(monkeypatch):
    trainer = pretended(monkeypatch, epochs=60)
    read, rests = [], []

    def at_rest():
        rests.append(trainer.epoch)
        assert trainer.epoch == len(read)

    train(trainer, read.append, wants_rest=lambda: len(read) % 20 > 14, at_rest=at_rest)
    assert len(read) == 60
    assert any(15 <= epoch < 29 for epoch in rests), "not only at the end and while nothing is captured"


def test_epochs_that_took_long_once_are_measured_again():
    class Measured(ToHost):
        def __init__(self, seconds):
            super().__init__(torch.zeros(1))
            self.seconds_since = lambda begin: seconds

    ring, flight = EpochRing(torch.nn.Linear(2, 2), 8, 2), InFlight(CPU)
    for number, seconds, expected in ((1, 9.0, FIRST), (4, 4.0, 1), (1, 0.005, 4)):
        flight.add(Burst(None, [Launched(1, 0.1, 0)] * number, Measured(seconds)))
        assert len([*flight.finished()]) == 1
        assert flight.room(ring) == expected


def test_a_run_that_follows_another_of_its_group_launches_as_many_as_that_does():
    class Measured(ToHost):
        def seconds_since(self, begin):
            return 4e-3

    def told(flight, number):
        flight.add(Burst(None, [Launched(1, 0.1, 0)] * number, Measured(torch.zeros(1))))
        return [*flight.finished()]

    ring = EpochRing(torch.nn.Linear(2, 2), ROWS, 2)
    with joined(Group(CPU)):
        first, second = InFlight(CPU), InFlight(CPU)
        assert told(first, 1)
        assert second.room(ring) == FIRST, "the epoch that was captured tells nothing"
        assert told(first, 4)
        assert second.room(ring) == ROWS // BURSTS
        assert told(second, 1)
        assert second.room(ring) == ROWS // BURSTS, "neither does that of another run"
    assert InFlight(CPU).room(ring) == FIRST, "nor does another group"


@pytest.mark.parametrize("begins", [True, False])
def test_nothing_is_waited_for_while_other_runs_are_yet_to_begin(monkeypatch, begins):
    group, waited, turns = Group(CPU, begins=begins), [], 0
    monkeypatch.setattr(ToHost, "is_there", property(lambda metrics: turns > 20))
    wait = ToHost.wait
    monkeypatch.setattr(ToHost, "wait", lambda metrics: waited.append(turns) or wait(metrics))
    with joined(group):
        for _ in pretended(monkeypatch, epochs=9).steps(lambda log: None):
            turns += 1
    assert (min(waited) > 20) == begins


def test_without_a_ring_epochs_follow_one_another():
    flight = InFlight(CPU)
    assert flight.room(None) == 1
