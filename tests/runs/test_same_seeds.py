"""Several seeds: each bit for bit what it is alone, callbacks as if one came after the other."""

import gc
import os
import warnings

import pytest
import torch
from tests.graphs import small_data
from tests.named import named
from tests.runs.small_runs import EVERYTHING, assert_same_run, gpu

import legnn
from legnn.errors import InputError, Interrupted
from legnn.runs import RunFolder, resume_seeds, seed_processes


@pytest.mark.parametrize("given", [{}, {"batch": 16}, {"architecture": "pyg_gcn"}])
def test_every_seed_is_to_the_bit_what_it_is_alone(tmp_path, given):
    given = {**EVERYTHING, **given}
    before = torch.get_rng_state()
    legnn.train_seeds(small_data(), settings=named(**given), seeds=5, out=tmp_path / "all")
    assert torch.equal(torch.get_rng_state(), before)
    for seed in range(5):
        legnn.train(small_data(), settings=named(**given, seed=seed), out=tmp_path / f"alone-{seed}")
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


def test_callbacks_come_as_if_one_seed_followed_the_other():
    told = []
    legnn.train_seeds(
        small_data(),
        settings=named(**EVERYTHING),
        seeds=4,
        on_seed=told.append,
        on_epoch=lambda log: told.append((log.epoch,)),
    )
    assert told == [entry for seed in range(4) for entry in (seed, *((k,) for k in range(1, 9)))]


def test_seeds_that_were_interrupted_continue_to_the_same_bits(tmp_path):
    data, epochs = small_data(), []
    given = {**EVERYTHING, "epochs": 40}
    with pytest.raises(Interrupted) as stopped:
        legnn.train_seeds(
            data,
            settings=named(**given),
            seeds=4,
            out=tmp_path / "all",
            on_epoch=epochs.append,
            should_stop=lambda: bool(epochs),
        )
    assert stopped.value.folder == tmp_path / "all"
    assert not any(RunFolder(tmp_path / "all" / f"seed-{seed}").is_finished for seed in range(4))
    resume_seeds(tmp_path / "all", data)
    for seed in range(4):
        legnn.train(data, settings=named(**given, seed=seed), out=tmp_path / f"alone-{seed}")
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


def test_an_error_of_one_seed_is_raised_and_finished_seeds_stay(tmp_path, monkeypatch):
    start = seed_processes.start_or_continue

    def fail_with_seed_two(graph, settings, folder, callbacks):
        if settings.train.seed == 2:
            raise InputError("seed 2 is no good")
        return start(graph, settings, folder, callbacks)

    monkeypatch.setattr(seed_processes, "start_or_continue", fail_with_seed_two)
    with pytest.raises(InputError, match="seed 2 is no good"):
        legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=4, out=tmp_path / "all")
    assert [RunFolder(tmp_path / "all" / f"seed-{seed}").is_finished for seed in range(4)] == [True, True, False, False]


def test_a_folder_that_cannot_be_written_is_an_error_of_all(tmp_path, monkeypatch):
    def refuse(folder, *given):
        raise OSError("the disk is full")

    monkeypatch.setattr(RunFolder, "finish", refuse)
    with pytest.raises(OSError, match="the disk is full"):
        legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=4, out=tmp_path / "all")
    assert not (tmp_path / "all" / "summary.json").exists()


def test_an_error_of_a_callback_ends_all_seeds_and_is_raised():
    def refuse(log):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        legnn.train_seeds(small_data(), settings=named(**EVERYTHING), seeds=4, on_epoch=refuse)


@gpu
@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_on_a_gpu_every_seed_is_to_the_bit_what_it_is_alone(tmp_path, backbone):
    given = {**EVERYTHING, "epochs": 20, "backbone": backbone, "device": "cuda"}
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a step that is not captured
        legnn.train_seeds(small_data(), settings=named(**given), seeds=6, out=tmp_path / "all")
    assert all(map(torch.equal, before, (torch.get_rng_state(), torch.cuda.get_rng_state())))
    for seed in range(6):
        legnn.train(small_data(), settings=named(**given, seed=seed), out=tmp_path / f"alone-{seed}")
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


@gpu
def test_on_a_gpu_seeds_that_were_interrupted_continue_to_the_same_bits(tmp_path):
    data, epochs = small_data(), []
    given = {**EVERYTHING, "epochs": 300, "patience": 300, "device": "cuda"}
    with pytest.raises(Interrupted):
        legnn.train_seeds(
            data,
            settings=named(**given),
            seeds=4,
            out=tmp_path / "all",
            on_epoch=epochs.append,
            should_stop=lambda: bool(epochs),
        )
    resume_seeds(tmp_path / "all", data)
    for seed in range(4):
        legnn.train(data, settings=named(**given, seed=seed), out=tmp_path / f"alone-{seed}")
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
        legnn.train_seeds(small_data(), settings=named(**EVERYTHING, device="cuda"), seeds=seeds_at_once)
        used.append(used_memory())
    assert set(used[2:]) == {used[2]}
