"""Seeds in several processes: each bit for bit what it is alone, callbacks as if one came after the other."""

import pytest
from tests.graphs import small_data
from tests.named import named
from tests.runs.small_runs import EVERYTHING, assert_same_run
from torch_geometric.nn import GATv2Conv

import legnn
from legnn.errors import InputError, Interrupted
from legnn.nn import BACKBONES, lifted, register_backbone
from legnn.runs import RunFolder, resources, seed_processes, seeds
from legnn.runs.task_server import Signals


@pytest.fixture
def processes(monkeypatch):
    """Two processes, however short the runs are."""
    monkeypatch.setattr(seeds, "processes_for", lambda settings, graph, device, runs: 2)
    monkeypatch.setattr(seed_processes, "WORTH_SECONDS", 0.0)


def test_short_runs_start_no_process(monkeypatch):
    monkeypatch.setattr(seed_processes, "carry_out", lambda *_, **__: pytest.fail("a process is started"))
    legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=3)


def test_a_graph_that_cannot_be_sent_is_trained_on_here(monkeypatch, processes):
    monkeypatch.setattr(seed_processes, "carry_out", lambda *_, **__: pytest.fail("a process is started"))

    def refuse(graph):
        raise TypeError("cannot be pickled")

    monkeypatch.setattr(seed_processes.pickle, "dumps", refuse)
    assert legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=3).seeds == [0, 1, 2]


def test_many_epochs_are_trained_in_processes(monkeypatch):
    begun = []
    monkeypatch.setattr(seeds, "processes_for", lambda settings, graph, device, runs: 2)
    monkeypatch.setattr(seed_processes, "carry_out", lambda *_, **__: begun.append(True))
    with pytest.raises(Interrupted):  # for nothing was trained
        legnn.train_seeds(small_data(), settings=named(**{**EVERYTHING, "epochs": 2000, "patience": 1}), seeds=3)
    assert begun == [True]


def test_a_design_without_parameters_which_has_one_epoch_starts_no_process(monkeypatch):
    monkeypatch.setattr(seeds, "processes_for", lambda settings, graph, device, runs: 2)
    monkeypatch.setattr(seed_processes, "carry_out", lambda *_, **__: pytest.fail("a process is started"))
    legnn.train_seeds(
        small_data(), settings=named(**{**EVERYTHING, "architecture": "label_propagation", "epochs": 2000}), seeds=3
    )


def test_a_callback_may_train_on_another_graph(tmp_path):
    other, found = small_data(nodes=30), []

    def on_epoch(log) -> None:
        if log.epoch == 2:
            found.append(legnn.train(other, epochs=2, device="cpu").predictions)

    legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=2, out=tmp_path / "all", on_epoch=on_epoch)
    expected = legnn.train(other, epochs=2, device="cpu").predictions
    assert [one.equals(expected) for one in found] == [True, True]
    legnn.train(small_data(), settings=named(**EVERYTHING, seed=1), out=tmp_path / "alone")
    assert_same_run(tmp_path / "all" / "seed-1", tmp_path / "alone")


def test_a_backbone_of_the_callers_is_trained_here_and_draws_as_it_does_alone(tmp_path, monkeypatch):
    def make(settings, both, out):
        return GATv2Conv(both, out, add_self_loops=False, dropout=0.5)

    monkeypatch.setattr(seed_processes, "carry_out", lambda *_, **__: pytest.fail("a process is started"))
    monkeypatch.setattr(seed_processes, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(resources, "usable_cores", lambda: 4)
    register_backbone("noisy", lifted(make))
    given = {**EVERYTHING, "backbone": "noisy", "normalize": "relation"}
    try:
        legnn.train_seeds(small_data(), settings=named(**given), seeds=2, out=tmp_path / "all")
        legnn.train(small_data(), settings=named(**given, seed=1), out=tmp_path / "alone")
        assert_same_run(tmp_path / "all" / "seed-1", tmp_path / "alone")
    finally:
        del BACKBONES["noisy"]


@pytest.mark.slow
def test_seeds_of_other_processes_are_to_the_bit_what_they_are_alone_and_reported_in_order(tmp_path, processes):
    reported = []
    legnn.train_seeds(
        small_data(),
        settings=named(**EVERYTHING),
        seeds=3,
        out=tmp_path / "all",
        on_seed=reported.append,
        on_epoch=lambda log: reported.append((log.epoch,)),
    )
    assert reported == [entry for seed in range(3) for entry in (seed, *((k,) for k in range(1, 9)))]
    for seed in range(3):
        legnn.train(small_data(), settings=named(**EVERYTHING, seed=seed), out=tmp_path / f"alone-{seed}")
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


def train_elsewhere(monkeypatch, outcome):
    """The processes get all seeds: all but the second are trained, which has this outcome."""

    def carry_out(function, next_task, jobs, *, on_outcome, on_report, **options):
        while (seed := next_task()) is not None:
            on_report(seed, [("on_stage", "preparing")])
            on_outcome(seed, outcome if seed == 1 else function(seed, Signals()))

    monkeypatch.setattr(seed_processes, "carry_out", carry_out)


def test_a_seed_whose_process_was_killed_is_trained_here(monkeypatch, processes, tmp_path):
    train_elsewhere(monkeypatch, seed_processes.Failure("killed"))
    summary = legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=3, out=tmp_path / "all")
    assert summary.seeds == [0, 1, 2]
    assert RunFolder(tmp_path / "all" / "seed-1").is_finished


def test_an_error_of_another_process_is_raised_here(monkeypatch, processes):
    train_elsewhere(monkeypatch, InputError("seed 1 is no good"))
    with pytest.raises(InputError, match="seed 1 is no good"):
        legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=3)


def test_what_another_process_stopped_is_an_interruption_of_all(monkeypatch, processes, tmp_path):
    train_elsewhere(monkeypatch, seed_processes.Stopped(3))
    with pytest.raises(Interrupted) as stopped:
        legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=3, out=tmp_path / "all")
    assert stopped.value.folder == tmp_path / "all"


@pytest.mark.slow
def test_an_interruption_ends_the_seeds_of_all_processes_with_checkpoints(tmp_path, processes):
    folder = tmp_path / "all"

    def should_stop() -> bool:
        return (folder / "seed-1" / "metrics.jsonl").is_file()

    long = {**EVERYTHING, "epochs": 10**6, "patience": 10**6}
    with pytest.raises(Interrupted):
        legnn.train_seeds(small_data(), settings=named(**long), seeds=2, out=folder, should_stop=should_stop)
    for seed in range(2):
        run = RunFolder(folder / f"seed-{seed}")
        assert run.load_checkpoint()[1]["epoch"] == len(run.logs())
