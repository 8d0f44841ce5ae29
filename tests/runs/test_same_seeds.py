"""Several seeds: each bit for bit what it is alone."""

import gc
import os
import warnings

import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments
from tests.runs.small_runs import EVERYTHING, assert_same_run, gpu

import legnn
from legnn.errors import Interrupted
from legnn.runs import RunFolder
from legnn.sweep.seeds import resume_seeds


@pytest.mark.parametrize("given", [{}, {"batch": 16}, {"architecture": "pyg_gcn"}])
def test_every_seed_is_to_the_bit_what_it_is_alone(tmp_path, given):
    given = {**EVERYTHING, **given}
    before = torch.get_rng_state()
    legnn.train_seeds(small_data(), **arguments(**given), seeds=5, out=tmp_path / "all")
    assert torch.equal(torch.get_rng_state(), before)
    for seed in range(5):
        legnn.train(small_data(), **arguments(**given, seed=seed), out=tmp_path / f"alone-{seed}")
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


def test_seeds_that_were_interrupted_continue_to_the_same_bits(tmp_path):
    data, epochs = small_data(), []
    given = {**EVERYTHING, "epochs": 40}
    with pytest.raises(Interrupted) as stopped:
        legnn.train_seeds(
            data,
            **arguments(**given),
            seeds=4,
            out=tmp_path / "all",
            on_event=epochs.append,
            should_stop=lambda: len(epochs) > 5,
        )
    assert stopped.value.folder == tmp_path / "all"
    assert not any(RunFolder(tmp_path / "all" / f"seed-{seed}").is_finished for seed in range(4))
    resume_seeds(tmp_path / "all", data)
    for seed in range(4):
        legnn.train(data, **arguments(**given, seed=seed), out=tmp_path / f"alone-{seed}")
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


def test_an_error_of_a_callback_ends_all_seeds_and_is_raised():
    def refuse(event):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        legnn.train_seeds(small_data(), **arguments(**EVERYTHING), seeds=4, on_event=refuse)


@gpu
@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_on_a_gpu_every_seed_is_to_the_bit_what_it_is_alone(tmp_path, backbone):
    given = {**EVERYTHING, "epochs": 20, "backbone": backbone, "device": "cuda"}
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a step that is not captured
        legnn.train_seeds(small_data(), **arguments(**given), seeds=6, out=tmp_path / "all")
    assert all(map(torch.equal, before, (torch.get_rng_state(), torch.cuda.get_rng_state())))
    for seed in range(6):
        legnn.train(small_data(), **arguments(**given, seed=seed), out=tmp_path / f"alone-{seed}")
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")


@gpu
def test_on_a_gpu_seeds_that_were_interrupted_continue_to_the_same_bits(tmp_path):
    data, epochs = small_data(), []
    given = {**EVERYTHING, "epochs": 300, "patience": 300, "device": "cuda"}
    with pytest.raises(Interrupted):
        legnn.train_seeds(
            data,
            **arguments(**given),
            seeds=4,
            out=tmp_path / "all",
            on_event=epochs.append,
            should_stop=lambda: len(epochs) > 5,
        )
    resume_seeds(tmp_path / "all", data)
    for seed in range(4):
        legnn.train(data, **arguments(**given, seed=seed), out=tmp_path / f"alone-{seed}")
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
        legnn.train_seeds(small_data(), **arguments(**EVERYTHING, device="cuda"), seeds=seeds_at_once)
        used.append(used_memory())
    assert set(used[2:]) == {used[2]}
