"""What a run may use: `batch = auto` by memory, where the graph lies, and what is said when memory runs out."""

import re
from dataclasses import replace

import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments, named

import legnn
from legnn.config import ResolvedSettings, Settings
from legnn.datasets import load
from legnn.errors import InputError, OutOfMemory, in_gib
from legnn.runs import device, resources
from legnn.runs.device import Cpu, Gpu, hardware, visible_gpus
from legnn.runs.memory import Size
from legnn.runs.resources import (
    Storage,
    choose_batch,
    choose_precision,
    choose_storage,
    default_jobs,
    explain_out_of_memory,
    processes_for,
    storage_note,
    usable_cores,
)

CPU, GPU = torch.device("cpu"), torch.device("cuda")
QUICK = {"epochs": 2, "hidden": 8, "layers": 2}


def resolved(**options) -> tuple:
    data = load(small_data())
    return Settings().override(named(**{**QUICK, **options})).resolve(data.facts()), data


def test_auto_takes_the_full_batch_where_it_fits():
    settings, note = choose_batch(*resolved(), CPU)
    assert settings.train.batch == "full"
    assert note is None


def test_auto_takes_mini_batches_where_it_does_not_and_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(Cpu, "free_bytes", lambda self: 1000)
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    assert run.settings.train.batch == resources.DEFAULT_BATCH
    (note,) = [note for note in run.result.notes if note.code == "batch-chosen"]
    assert "would take about" in note.text
    # a run that goes on does not choose again
    assert ResolvedSettings.from_yaml(tmp_path / "run" / "settings.yaml").train.batch == resources.DEFAULT_BATCH


@pytest.mark.parametrize("batch", [7, "full"])
def test_what_the_user_says_is_not_chosen_again(monkeypatch, batch):
    monkeypatch.setattr(Cpu, "free_bytes", lambda self: 1000)
    settings, note = choose_batch(*resolved(batch=batch), CPU)
    assert settings.train.batch == batch
    assert note is None


# -- precision = auto ------------------------------------------------------------------------------------------------


@pytest.fixture
def ampere(monkeypatch):
    """A GPU that multiplies in bf16."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    return torch.device("cuda")


@pytest.mark.parametrize("as_train", [False, True])
@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_auto_is_bf16_on_a_gpu_and_says_so(ampere, backbone, labels, as_train):
    settings, note = choose_precision(*resolved(backbone=backbone, labels=labels, as_train=as_train), ampere)
    assert settings.train.precision == "bf16"
    assert note.code == "precision-chosen"


def test_auto_stays_where_bf16_is_slow_or_not_known_to_be_as_accurate(ampere, monkeypatch):
    auto, data = resolved(backbone="gcn")
    other = resolved(backbone="sage")[0]
    assert choose_precision(other, data, ampere) == (other, None)
    model = resolved(architecture="jknet")[0]
    assert choose_precision(model, data, ampere) == (model, None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert choose_precision(auto, data, ampere) == (auto, None)


def test_auto_is_bf16_on_a_cpu_that_has_it_for_wide_models(monkeypatch):
    monkeypatch.setattr(device, "cpu_multiplies_bf16", lambda: True)
    narrow, data = resolved(backbone="gat")
    wide = resolved(backbone="gat", hidden=4 * 10**4)[0]
    assert choose_precision(narrow, data, CPU) == (narrow, None)
    settings, note = choose_precision(wide, data, CPU)
    assert settings.train.precision == "bf16"
    assert note.code == "precision-chosen"
    other = wide.override(named(backbone="sage"))
    assert choose_precision(other, data, CPU) == (other, None)
    monkeypatch.setattr(device, "cpu_multiplies_bf16", lambda: False)
    assert choose_precision(wide, data, CPU) == (wide, None)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_a_precision_that_is_given_is_not_chosen_again(ampere, precision):
    settings, data = resolved(precision=precision)
    assert choose_precision(settings, data, ampere) == (settings, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "batch must be at least 1"),
        ({"batch": "ful"}, "did you mean 'full'"),
        ({"batch": 4, "fanout": "3,2,1"}, "3 numbers and the model 2 layers"),
        ({"batch": 4, "fanout": "3;2"}, "fanout must be numbers"),
        ({"batch": 4, "fanout": "0"}, "fanout must be numbers"),
    ],
)
def test_a_batch_that_cannot_be_meant_is_refused_before_a_folder_is_made(tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        legnn.train(small_data(), **arguments(**QUICK, **options), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA"), MemoryError(), RuntimeError("can't allocate memory")]
)
@pytest.mark.parametrize(("batch", "advice"), [("full", "`train.batch=1024`"), (64, "`train.batch=32`")])
def test_running_out_of_memory_is_one_sentence_with_what_to_try(error, batch, advice):
    settings, _ = resolved(batch=batch)
    with pytest.raises(OutOfMemory, match=f"out of memory .*{advice}"), explain_out_of_memory(settings):
        raise error


def test_other_errors_are_not_taken_for_it():
    with pytest.raises(RuntimeError, match="shape"), explain_out_of_memory(resolved()[0]):
        raise RuntimeError("shape mismatch")


def test_memory_of_the_machine_is_known():
    assert 0 < hardware(CPU).free_bytes() <= hardware(CPU).total_bytes()
    assert in_gib(3 * 2**29) == "1.5 GiB"


def test_the_estimate_grows_with_everything_it_depends_on():
    size = Size(nodes=1000, edges=5000, features=10, classes=3, hidden=16, layers=2)
    for name in ("nodes", "edges", "features", "classes", "hidden", "layers"):
        assert replace(size, **{name: 2 * getattr(size, name)}).training_bytes > size.training_bytes
    assert size.graph_bytes < size.inference_bytes < size.training_bytes


def test_on_a_cpu_the_graph_lies_in_its_memory():
    settings, data = resolved(batch=4)
    assert choose_storage(settings, data, CPU) == Storage(CPU, CPU)


@pytest.mark.parametrize(
    ("free", "storage", "said"),
    [
        (1.0, lambda size: Storage(GPU, GPU), None),
        (
            0.5,
            lambda size: Storage(GPU, CPU, hot_bytes=pytest.approx(size.graph_bytes / 2 - rest(size), abs=2)),
            r"Features stay in the host's memory \(.* free on cuda\), but for the .* that are read most\.",
        ),
        (0.001, lambda size: Storage(CPU, CPU), r"The graph stays in the host's memory \(.* free on cuda\)\."),
    ],
)
def test_features_are_the_first_to_stay_in_the_hosts_memory_and_that_is_said(monkeypatch, free, storage, said):
    settings, data = resolved(batch=4)
    size = replace(resources.size_of(data, settings), features=10_000)
    monkeypatch.setattr(resources, "size_of", lambda *_: size)
    monkeypatch.setattr(Gpu, "free_bytes", lambda self: free * size.graph_bytes / resources.RESIDENT + 1)
    assert choose_storage(settings, data, GPU) == storage(size)
    note = storage_note(settings, data, GPU)
    assert note is None if said is None else re.fullmatch(said, note.text)


def test_each_gpu_and_each_core_trains_one_run_at_a_time(monkeypatch):
    settings, data = resolved(backbone="gcn")
    assert default_jobs("cpu") == usable_cores()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,7")
    assert visible_gpus("auto") == ["4", "5", "7"]
    assert (default_jobs("auto"), visible_gpus("cpu")) == (3, [])
    assert [processes_for(settings, data, GPU, runs) for runs in (1, 2, 9)] == [1, 2, 3]


def rest(size: Size) -> int:
    return size.graph_bytes - size.feature_bytes
