"""Seeds in turns in one process: each bit for bit what it is alone, callbacks as if one came after the other."""

import gc
import os
import warnings

import pytest
import torch
from tests.graphs import small_data

import legnn
from legnn.errors import InputError, Interrupted
from legnn.runs import RunFolder, resume_seeds, seeds
from legnn.runs.in_order import InOrder
from legnn.runs.progress import Callbacks
from legnn.runs.seed_turns import train_in_turns
from legnn.training.sharing import current_group, kept_by_group, note_begun, note_left, others_begin

CPU = torch.device("cpu")

EVERYTHING = {"epochs": 8, "hidden": 8, "dropout": 0.5, "input_dropout": 0.2, "as_train": True, "batch": "full"}
"""Settings of a run that draws all the numbers that a run draws."""


def gpu(test):
    """Needs a CUDA device."""
    return pytest.mark.gpu(pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")(test))


@pytest.fixture
def at_once(monkeypatch):
    """Three runs at a time, on any device."""
    monkeypatch.setattr(seeds, "runs_at_once", lambda settings, graph, device, runs: min(runs, 3))


def weights(folder) -> dict[str, torch.Tensor]:
    return RunFolder(folder).weights()


def assert_same_run(one, other) -> None:
    mine, theirs = weights(one), weights(other)
    assert mine.keys() == theirs.keys()
    assert [name for name in mine if not torch.equal(mine[name], theirs[name])] == []
    assert RunFolder(one).predictions().equals(RunFolder(other).predictions())
    assert RunFolder(one).logs() == RunFolder(other).logs()


@pytest.mark.parametrize("given", [{}, {"batch": 16}, {"architecture": "pyg_gcn"}])
def test_every_seed_is_to_the_bit_what_it_is_alone(tmp_path, at_once, given):
    given = {**EVERYTHING, **given}
    before = torch.get_rng_state()
    legnn.train_seeds(small_data(), seeds=5, out=tmp_path / "all", **given)
    assert torch.equal(torch.get_rng_state(), before)
    for seed in range(5):
        legnn.train(small_data(), seed=seed, out=tmp_path / f"alone-{seed}", **given)
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


@pytest.mark.parametrize("at_once", [2, 9])
def test_others_are_told_as_long_as_a_seed_with_a_place_has_no_epoch_in_flight(at_once):
    told = {seed: [] for seed in range(4)}
    runs = InOrder([*told], Callbacks(lambda log: None, lambda: False), lambda seed: None)

    def start(seed, callbacks):
        yield  # its folder is made
        current_group().is_captured = True
        note_begun()
        for _ in range(9):
            told[seed].append(others_begin())
            yield

    train_in_turns(start, runs, at_once, device=CPU)
    assert told[0][:4] == [False, True, True, at_once > 2]
    assert not any(told[0][7:])
    assert told[3][1:] == [False] * 8


def test_what_runs_share_is_forgotten_while_the_last_ones_write():
    kept = []
    runs = InOrder(range(3), Callbacks(lambda log: None, lambda: False), lambda seed: None)

    def start(seed, callbacks):
        group = current_group()
        kept_by_group("task", object)
        group.is_captured = True
        note_begun()
        for _ in range(4):
            yield
        kept.append(bool(group.kept))
        note_left()
        for _ in range(2):
            yield
        kept.append(bool(group.kept))

    train_in_turns(start, runs, 3, device=CPU)
    assert kept == [True, True, True, True, False, False], "the first ends before the last leaves the device"


@pytest.mark.parametrize(("at_once", "freed"), [(1, [False, True, True]), (3, [False, False, False])])
def test_captured_steps_are_freed_for_who_takes_the_place_of_another(at_once, freed):
    seen = []
    runs = InOrder(range(3), Callbacks(lambda log: None, lambda: False), lambda seed: None)

    def start(seed, callbacks):
        group = current_group()
        seen.append(seed > 0 and not group.ended)
        group.is_captured = True
        group.ended.append(seed)
        yield from [None] * 5

    train_in_turns(start, runs, at_once, device=CPU)
    assert seen == freed


def test_callbacks_come_as_if_one_seed_followed_the_other(at_once):
    told = []
    legnn.train_seeds(
        small_data(), seeds=4, on_seed=told.append, on_epoch=lambda log: told.append((log.epoch,)), **EVERYTHING
    )
    assert told == [entry for seed in range(4) for entry in (seed, *((k,) for k in range(1, 9)))]


def test_seeds_that_were_interrupted_continue_to_the_same_bits(tmp_path, at_once):
    data, epochs = small_data(), []
    given = {**EVERYTHING, "epochs": 40}
    with pytest.raises(Interrupted) as stopped:
        legnn.train_seeds(
            data, seeds=4, out=tmp_path / "all", on_epoch=epochs.append, should_stop=lambda: bool(epochs), **given
        )
    assert stopped.value.folder == tmp_path / "all"
    assert not any(RunFolder(tmp_path / "all" / f"seed-{seed}").is_finished for seed in range(4))
    resume_seeds(tmp_path / "all", data)
    for seed in range(4):
        legnn.train(data, seed=seed, out=tmp_path / f"alone-{seed}", **given)
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


def test_an_error_of_one_seed_ends_the_others_and_is_raised(tmp_path, at_once, monkeypatch):
    start = seeds.run_steps

    def fail_with_seed_two(graph, settings, folder, callbacks):
        if settings.train.seed == 2:
            raise InputError("seed 2 is no good")
        return (yield from start(graph, settings, folder, callbacks))

    monkeypatch.setattr(seeds, "run_steps", fail_with_seed_two)
    with pytest.raises(InputError, match="seed 2 is no good"):
        legnn.train_seeds(small_data(), seeds=4, out=tmp_path / "all", **{**EVERYTHING, "epochs": 200, "patience": 200})
    assert not RunFolder(tmp_path / "all" / "seed-1").is_finished


def test_a_folder_that_cannot_be_written_is_an_error_of_all(tmp_path, at_once, monkeypatch):
    def refuse(folder, *given):
        raise OSError("the disk is full")

    monkeypatch.setattr(RunFolder, "finish", refuse)
    with pytest.raises(OSError, match="the disk is full"):
        legnn.train_seeds(small_data(), seeds=4, out=tmp_path / "all", **EVERYTHING)
    assert not (tmp_path / "all" / "summary.json").exists()


def test_an_error_of_a_callback_ends_all_seeds_and_is_raised(at_once):
    def refuse(log):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        legnn.train_seeds(small_data(), seeds=4, on_epoch=refuse, **EVERYTHING)


@gpu
@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_on_a_gpu_every_seed_is_to_the_bit_what_it_is_alone(tmp_path, backbone):
    given = {**EVERYTHING, "epochs": 20, "backbone": backbone, "device": "cuda"}
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a step that is not captured
        legnn.train_seeds(small_data(), seeds=6, out=tmp_path / "all", **given)
    assert all(map(torch.equal, before, (torch.get_rng_state(), torch.cuda.get_rng_state())))
    for seed in range(6):
        legnn.train(small_data(), seed=seed, out=tmp_path / f"alone-{seed}", **given)
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


@gpu
def test_on_a_gpu_seeds_that_were_interrupted_continue_to_the_same_bits(tmp_path):
    data, epochs = small_data(), []
    given = {**EVERYTHING, "epochs": 300, "patience": 300, "device": "cuda"}
    with pytest.raises(Interrupted):
        legnn.train_seeds(
            data, seeds=4, out=tmp_path / "all", on_epoch=epochs.append, should_stop=lambda: bool(epochs), **given
        )
    resume_seeds(tmp_path / "all", data)
    for seed in range(4):
        legnn.train(data, seed=seed, out=tmp_path / f"alone-{seed}", **given)
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


def used_memory() -> tuple[int, int]:
    """Of the GPU, in MiB: what PyTorch has reserved, and what is not free where no other test uses the GPU."""
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    is_alone = "PYTEST_XDIST_WORKER" not in os.environ
    return torch.cuda.memory_reserved() >> 20, (total - free) >> 20 if is_alone else 0


@gpu
@pytest.mark.parametrize("seeds_at_once", [1, 4])
def test_runs_leave_no_memory_of_the_gpu_behind(seeds_at_once):
    used = []
    # of other tests
    gc.collect()
    for _ in range(30 // seeds_at_once):
        legnn.train_seeds(small_data(), seeds=seeds_at_once, device="cuda", **EVERYTHING)
        used.append(used_memory())
    assert set(used[2:]) == {used[2]}
