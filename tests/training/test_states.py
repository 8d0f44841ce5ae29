"""Where the states between layers lie: predictions are the same, and nothing is left of them on disk."""

import gc
import os
import subprocess
import sys
from collections import namedtuple

import pytest
import torch
from tests.training.mini_batches import CPU, make

from legnn.errors import OutOfMemory
from legnn.training import DevicePlan, LayerWise, states
from legnn.training.inference import to_class_and_confidence
from legnn.training.layer_wise import nodes_of, split_by_work
from legnn.training.states import StateStore, choose_location, state_folder


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of the states."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(states.tempfile, "tempdir", None)
    return tmp_path


def new_states(location, rows=9, dtype=torch.float32) -> StateStore:
    return StateStore((rows, 3), dtype, CPU, location)


@pytest.mark.parametrize("backbone", ["gcn", "gat"])
@pytest.mark.parametrize("labels", ["vanilla", "enhanced"])
def test_predictions_are_the_same_to_the_bit_wherever_states_lie(backbone, labels):
    model, task = make(labels, nodes=200, backbone=backbone, layers=3)
    shown = task.train if labels != "vanilla" else task.train[:0]
    for nodes in (torch.arange(200), task.val, task.val.flip(0)):
        found = [
            LayerWise(model, task, CPU, torch.float32, chunk_size=70, location=location).logits(shown, nodes)
            for location in ("host", "disk", None)
        ]
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[0], found[2])


def test_states_before_the_first_stage_may_lie_on_disk_too():
    model, task = make("enhanced", nodes=100, backbone="gcnii", layers=4)
    assert model.uses_initial_state
    nodes = torch.arange(100)
    one, other = (
        LayerWise(model, task, CPU, torch.float32, chunk_size=30, location=location).logits(task.train, nodes)
        for location in ("host", "disk")
    )
    assert torch.equal(one, other)


@pytest.mark.parametrize("location", ["host", "disk"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_rows_that_were_written_are_read(location, dtype):
    found = new_states(location, dtype=dtype)
    found.write(torch.arange(2, 6), torch.arange(12, dtype=dtype).view(4, 3))
    found.write(torch.tensor([0, 8]), torch.full((2, 3), -1, dtype=dtype))
    rows = found.read(torch.tensor([8, 3, 3, 0]))
    assert rows.dtype == dtype
    assert rows.tolist() == [[-1] * 3, [3, 4, 5], [3, 4, 5], [-1] * 3]


def test_many_rows_are_read_by_many_threads_in_order():
    found = new_states("disk", rows=20_000)
    values = torch.randn(20_000, 3)
    found.write(torch.arange(20_000), values)
    nodes = torch.randint(20_000, (30_000,))
    assert torch.equal(found.read(nodes), values[nodes])


@pytest.mark.parametrize("location", ["host", "disk"])
def test_rows_are_zeros_where_processes_add_theirs(location):
    first = new_states(location)
    first.write(torch.arange(9), torch.ones(9, 3))
    assert not first.zeros_like().values.any()
    assert not new_states(location).values.any()


# -- on disk ---------------------------------------------------------------------------------------------------------


def test_a_file_of_states_has_no_name_and_its_space_comes_back(folder):
    before = os.statvfs(folder)
    found = new_states("disk", rows=4_000_000)
    during = os.statvfs(folder)
    assert list(folder.iterdir()) == []
    assert (before.f_bfree - during.f_bfree) * before.f_frsize > 20_000_000
    del found
    gc.collect()
    assert (os.statvfs(folder).f_bfree - during.f_bfree) * before.f_frsize > 20_000_000


def test_nothing_is_left_of_a_process_that_was_killed(folder):
    code = (
        "import os, signal, torch\nfrom legnn.training.states import StateStore\n"
        "states = StateStore((1000, 4), torch.float32, torch.device('cpu'), 'disk')\n"
        "states.write(torch.arange(1000), torch.ones(1000, 4))\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(folder)}, check=False)
    assert done.returncode == -9
    assert list(folder.iterdir()) == []


def test_nothing_is_left_after_an_error(folder):
    model, task = make(nodes=100)
    with pytest.raises(ZeroDivisionError):
        LayerWise(model, task, CPU, torch.float32, chunk_size=30, location="disk").logits(
            task.train, torch.arange(100), lambda logits: logits if not len(logits) else logits / (1 // 0)
        )
    assert list(folder.iterdir()) == []


def test_a_disk_that_is_too_small_is_named_before_anything_is_computed(folder, monkeypatch):
    usage = namedtuple("usage", "total used free")(10, 5, 5)
    monkeypatch.setattr(states.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OutOfMemory, match=rf"layers take .*, and 0.0 GiB in {folder}: set TMPDIR to a folder"):
        LayerWise(*make(nodes=100), CPU, torch.float32, chunk_size=30, location="disk").logits(
            torch.arange(0), torch.arange(100)
        )


def test_states_lie_in_the_systems_folder_for_large_files_unless_another_is_given(folder, monkeypatch):
    assert state_folder() == folder
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert str(state_folder()) == "/var/tmp"


# -- bf16 ------------------------------------------------------------------------------------------------------------


def test_states_have_the_precision_in_which_they_are_computed():
    model, task = make(nodes=300, layers=3, hidden=32)
    nodes = torch.arange(300)

    def confidences(location: str, dtype: torch.dtype) -> torch.Tensor:
        inference = LayerWise(model, task, CPU, dtype, chunk_size=500, location=location)
        return inference.logits(task.train, nodes, to_class_and_confidence)[:, 1]

    exact, rounded = confidences("host", torch.float32), confidences("host", torch.bfloat16)
    assert torch.equal(confidences("disk", torch.float32), exact)
    assert torch.equal(confidences("disk", torch.bfloat16), rounded)
    assert 0 < (rounded - exact).abs().max() < 0.02


# -- which location -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "device_bytes", "location"),
    [(40, 0, "host"), (60, 0, "disk"), (700, 850, "device"), (870, 850, "disk"), (0, 0, "host"), (40, -9, "host")],
)
def test_states_lie_in_the_first_location_where_they_fit(size, device_bytes, location):
    assert choose_location(size, device_bytes, 100) == location


def test_what_does_not_fit_the_memory_is_predicted_from_disk(monkeypatch):
    model, task = make(nodes=100)
    asked, disk_usage = [], states.shutil.disk_usage
    monkeypatch.setattr(states.shutil, "disk_usage", lambda path: asked.append(path) or disk_usage(path))
    parts = LayerWise(model, task, CPU, torch.float32, chunk_size=30)
    expected = parts.logits(task.train, task.val)
    assert not asked, "states are in memory"
    small = LayerWise(model, task, CPU, torch.float32, chunk_size=30, plan=DevicePlan(host_bytes=lambda: 1000))
    assert torch.equal(small.logits(task.train, task.val), expected)
    assert asked


# -- chunks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["host", "disk"])
def test_chunks_that_threads_prepare_are_the_same(location):
    model, task = make(nodes=300, layers=3)
    nodes = torch.arange(300)
    expected, found = (
        LayerWise(
            model, task, CPU, torch.float32, chunk_size=40, location=location, plan=DevicePlan(samplers=samplers)
        ).logits(task.train, nodes)
        for samplers in (0, 3)
    )
    assert torch.equal(found, expected)


def test_nodes_of_a_mask_come_in_order_some_at_a_time(monkeypatch):
    monkeypatch.setattr("legnn.training.layer_wise.NODES_AT_A_TIME", 10)
    mask = torch.rand(95) < 0.3
    mask[40:50] = False
    parts = list(nodes_of(mask))
    assert torch.equal(torch.cat(parts), mask.nonzero().flatten())
    assert all(part.numel() and part[-1] - part[0] < 10 for part in parts)


def test_few_nodes_at_a_time_change_no_prediction(monkeypatch):
    model, task = make(nodes=200)
    nodes = torch.arange(200)
    expected = LayerWise(model, task, CPU, torch.float32, chunk_size=50).logits(task.train, nodes)
    monkeypatch.setattr("legnn.training.layer_wise.NODES_AT_A_TIME", 37)
    found = LayerWise(model, task, CPU, torch.float32, chunk_size=50).logits(task.train, nodes)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_work_is_split_evenly():
    parts = split_by_work(torch.tensor([3, 0, 9, 2, 2, 50, 1]), 10)
    assert torch.cat(parts).tolist() == list(range(7))
    assert split_by_work(torch.zeros(0, dtype=torch.long), 10) == []
