"""A run that was cut off goes on as if it had not been, bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.graphs import small_data, table_folder
from tests.named import arguments

import legnn
from legnn.errors import InputError
from legnn.runs.checkpointer import Checkpointer
from legnn.runs.tensors import load_tensors, save_tensors
from legnn.sweep.seeds import resume_seeds

ROOT = Path(__file__).parents[2]
OPTIONS = {
    "epochs": 12,
    "hidden": 8,
    "as_train": True,
    "pseudo_label_threshold": 0.3,
    "dropout": 0.5,
    "checkpoint_seconds": 0.0,
}


def stop_after(epochs: int):
    """What to pass as `on_epoch` and `should_stop` so that a run stops when `epochs` epochs are done."""
    done = []
    return done.append, lambda: len(done) >= epochs


def tensors(folder: Path, name: str = "weights.safetensors") -> dict[str, torch.Tensor]:
    return load_file(folder / name)


def assert_same_run(one: Path, other: Path) -> None:
    first, second = tensors(one), tensors(other)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert (one / "metrics.jsonl").read_text() == (other / "metrics.jsonl").read_text()
    assert (one / "predictions.parquet").read_bytes() == (other / "predictions.parquet").read_bytes()
    clocks = [json.loads((folder / "result.json").read_text()) for folder in (one, other)]
    for result in clocks:
        result.pop("seconds")
    assert clocks[0] == clocks[1]


def interrupted(data, folder: Path, after: int, **options) -> Path:
    on_epoch, should_stop = stop_after(after)
    with pytest.raises(legnn.Interrupted) as caught:
        legnn.train(data, **arguments(**{**OPTIONS, **options}), out=folder, on_epoch=on_epoch, should_stop=should_stop)
    assert caught.value.epoch == after
    assert caught.value.folder == folder
    return folder


TRAIN_UNTIL_RENAMED = """
import json, os, signal, sys
from pathlib import Path
from tests.graphs import small_data
import legnn

def kill(event, arguments):
    if event == "os.rename" and Path(arguments[1]).name == file and (out / "weights.safetensors").exists():
        os.kill(os.getpid(), signal.SIGKILL)

out, file = Path(sys.argv[1]), sys.argv[2]
sys.addaudithook(kill)
legnn.train(small_data(), out=out, **json.loads(sys.argv[3]))
"""
"""Trains a run in a process that is killed when a file is complete and about to get its name."""


@pytest.mark.slow
@pytest.mark.parametrize("file", ["predictions.parquet", "digests.json", "result.json"])
def test_a_run_without_a_checkpoint_that_was_killed_while_it_was_finished_is_trained_again(tmp_path, file):
    options = {**OPTIONS, "checkpoint_seconds": 100.0}
    whole = legnn.train(small_data(), **arguments(**options), out=tmp_path / "whole")
    killed = [sys.executable, "-c", TRAIN_UNTIL_RENAMED, str(tmp_path / "cut"), file, json.dumps(arguments(**options))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    assert subprocess.run(killed, env=environment, timeout=120).returncode == -signal.SIGKILL
    assert len([*(tmp_path / "cut").glob(f".{file}.*.partial")]) == 1
    assert not (tmp_path / "cut" / "checkpoint.safetensors").exists()
    assert legnn.resume(tmp_path / "cut", small_data()).result.test == whole.result.test
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert {path.name for path in (tmp_path / "cut").iterdir()} == {
        path.name for path in (tmp_path / "whole").iterdir()
    }


def test_lines_that_could_not_be_written_are_not_written_once_more():
    tried = []

    class Full:
        def append(self, logs):
            tried.append(logs)
            raise OSError("no space left")

    checkpointer = Checkpointer(None, Full(), 5.0, is_writer=True)
    checkpointer.add("a line")
    with pytest.raises(OSError, match="no space left"):
        checkpointer.write_logs()
    checkpointer.write_logs()
    assert tried == [["a line"]]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"backbone": "gat", "norm": "batch"},
        {"labels": "vanilla", "as_train": False},
        {"batch": 3, "fanout": "2"},
        {"batch": 5, "fanout": "all,2", "backbone": "sage", "layers": 2},
        {"cosine_steps": 9},
        {"batch": 3, "fanout": "2", "cosine_steps": 25, "ties": "latest"},
        {"batch": 4, "fanout": "2", "cosine_steps": 40, "pseudo_steps": "separate", "delta": 1.0},
    ],
)
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path, options):
    options = dict(options)
    if options.get("as_train") is False:
        options["threshold"] = None
    given = {key: value for key, value in {**OPTIONS, **options}.items() if value is not None}
    data = small_data()
    legnn.train(data, **arguments(**given), out=tmp_path / "whole")
    for after in (1, 5, 12):
        on_epoch, should_stop = stop_after(after)
        cut = tmp_path / f"cut-{after}"
        with pytest.raises(legnn.Interrupted):
            legnn.train(data, **arguments(**given), out=cut, on_epoch=on_epoch, should_stop=should_stop)
        logs = []
        legnn.resume(cut, data, on_epoch=logs.append)
        assert [log.epoch for log in logs] == list(range(after + 1, 13))
        assert_same_run(tmp_path / "whole", cut)


def test_a_run_may_be_cut_off_again_and_again(tmp_path):
    data = small_data()
    legnn.train(data, **arguments(**OPTIONS), out=tmp_path / "whole")
    folder = interrupted(data, tmp_path / "cut", 3)
    for more in (2, 4):
        on_epoch, should_stop = stop_after(more)
        with pytest.raises(legnn.Interrupted):
            legnn.resume(folder, data, on_epoch=on_epoch, should_stop=should_stop)
    legnn.resume(folder, data)
    assert_same_run(tmp_path / "whole", folder)


def test_epochs_after_the_last_checkpoint_are_done_again_and_not_told_twice(tmp_path):
    data = small_data()
    legnn.train(data, **arguments(**OPTIONS), out=tmp_path / "whole")
    folder = interrupted(data, tmp_path / "cut", 4)
    whole = (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines(keepends=True)
    # as kill -9 leaves it: two more epochs told, a third cut short, none of them in the checkpoint
    (folder / "metrics.jsonl").write_text("".join(whole[:6]) + whole[6][:20])
    legnn.resume(folder, data)
    assert_same_run(tmp_path / "whole", folder)


def test_a_run_killed_before_its_first_checkpoint_begins_anew(tmp_path):
    data = small_data()
    legnn.train(data, **arguments(**OPTIONS), out=tmp_path / "whole")
    folder = interrupted(data, tmp_path / "cut", 2)
    (folder / "checkpoint.safetensors").unlink()
    legnn.resume(folder, data)
    assert_same_run(tmp_path / "whole", folder)


def test_a_finished_run_is_shown_and_not_trained(tmp_path):
    run = legnn.train(small_data(), **arguments(**OPTIONS), out=tmp_path / "run")
    before = {path.name: path.read_bytes() for path in run.folder.iterdir()}
    logs = []
    again = legnn.resume(run.folder, on_epoch=logs.append)
    assert logs == []
    assert again.result == run.result
    assert again.predictions.equals(run.predictions)
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), run.model.parameters(), strict=True))
    assert {path.name: path.read_bytes() for path in run.folder.iterdir()} == before


def test_a_run_in_memory_needs_its_data_again(tmp_path):
    folder = interrupted(small_data(), tmp_path / "cut", 2)
    with pytest.raises(InputError, match="was trained on data in memory; give the same data again"):
        legnn.resume(folder)


def test_a_run_of_other_data_is_not_gone_on_with(tmp_path):
    folder = interrupted(small_data(), tmp_path / "cut", 2)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = small_data()
    other.x[0, 0] += 1
    with pytest.raises(InputError, match="is a run on other data: it was trained on 'small' with 40 nodes"):
        legnn.resume(folder, other)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_checkpoint_of_another_kind_of_device_is_refused(tmp_path):
    folder = interrupted(small_data(), tmp_path / "cut", 2, device="cpu")
    state, meta = load_tensors(folder / "checkpoint.safetensors")
    # a GPU's generator is a seed and an offset
    state["random/selection"] = torch.zeros(16, dtype=torch.uint8)
    save_tensors(folder / "checkpoint.safetensors", state, meta)
    with pytest.raises(
        InputError, match=r"not written on this kind of device \(cpu\).*a new one with `train.device=cpu`"
    ):
        legnn.resume(folder, small_data())


@pytest.mark.parametrize("field", ["x", "y", "edge_index", "train_mask"])
def test_any_change_of_the_data_is_noticed(tmp_path, field):
    folder = interrupted(small_data(), tmp_path / "cut", 1)
    other = small_data()
    if field == "edge_index":
        other.edge_index = other.edge_index[:, 1:]
    elif field == "train_mask":
        other.train_mask[0] = False
    else:
        place = other.train_mask.nonzero()[0, 0]
        other[field][place] = 1 - other[field][place]
    with pytest.raises(InputError, match="is a run on other data"):
        legnn.resume(folder, other)


# --- several seeds ---------------------------------------------------------------------------------------------------


def stop_after_events(epochs: int):
    """As `stop_after`, of a sweep."""
    on_epoch, should_stop = stop_after(epochs)
    return lambda event: None if event.log is None else on_epoch(event.log), should_stop


def seeds_interrupted(data, folder: Path, after: int) -> None:
    on_event, should_stop = stop_after_events(after)
    with pytest.raises(legnn.Interrupted) as caught:
        legnn.train_seeds(data, **arguments(**OPTIONS), seeds=3, out=folder, on_event=on_event, should_stop=should_stop)
    assert caught.value.folder == folder, "what goes on later is the whole, not the one seed"


def test_seeds_cut_off_anywhere_are_finished(tmp_path):
    data = small_data()
    whole = legnn.train_seeds(data, **arguments(**OPTIONS), seeds=3, out=tmp_path / "whole")
    for after in (3, 12, 15):
        cut = tmp_path / f"cut-{after}"
        seeds_interrupted(data, cut, after)
        assert not (cut / "summary.json").exists()
        summary = resume_seeds(cut, data).summary
        for seed in range(3):
            assert_same_run(tmp_path / "whole" / f"seed-{seed}", cut / f"seed-{seed}")
        assert replace(summary, seconds=0.0) == replace(whole.summary, seconds=0.0)


@pytest.mark.parametrize("left", [[], ["data.json"]])
def test_seeds_killed_while_a_folder_was_being_made_are_finished(tmp_path, left):
    data = small_data()
    seeds_interrupted(data, tmp_path / "cut", 12 + 3)
    (tmp_path / "cut" / "seed-2").mkdir()
    for path in (tmp_path / "cut" / "seed-1").iterdir():
        if path.name not in left:
            path.unlink()
    assert resume_seeds(tmp_path / "cut", data).summary.seeds == [0, 1, 2]


def test_seeds_on_a_fixed_split_of_tables_with_text_go_on(tmp_path):
    data = small_data()
    tables = table_folder(tmp_path / "tables", data, splits=False)
    nodes = (tables / "nodes.csv").read_text().splitlines()
    words = ["apple pear", "pear plum", "plum apple apple"]
    texts = [f"{line},{words[i % 3]} word{i % 5}" for i, line in enumerate(nodes[1:])]
    (tables / "nodes.csv").write_text("\n".join([nodes[0] + ",words", *texts]) + "\n")
    on_event, should_stop = stop_after_events(15)
    options = {**OPTIONS, "text": "words", "split": 3}
    with pytest.raises(legnn.Interrupted):
        legnn.train_seeds(
            tables, **arguments(**options), seeds=2, out=tmp_path / "cut", on_event=on_event, should_stop=should_stop
        )
    assert resume_seeds(tmp_path / "cut").summary.seeds == [0, 1]


def test_a_folder_that_is_not_one_of_seeds_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is not a folder of several seeds: it has no seeds\.json"):
        resume_seeds(tmp_path)
    (tmp_path / "seeds.json").write_text("[1, 2")
    with pytest.raises(InputError, match=r"seeds\.json is damaged"):
        resume_seeds(tmp_path)


# --- really killed ---------------------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "legnn"]


def environment() -> dict[str, str]:
    source = str(Path(legnn.__file__).resolve().parents[1])
    # threads that sleep while they wait: two cores are enough for two processes then
    return {**os.environ, "PYTHONPATH": source, "OMP_WAIT_POLICY": "PASSIVE"}


def start(*arguments: str, cwd: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, env=environment(), capture_output=True, text=True, timeout=120
    )


def wait_for_lines(process: subprocess.Popen, journal: Path, lines: int) -> None:
    deadline = time.monotonic() + 90
    while not journal.is_file() or journal.read_bytes().count(b"\n") < lines:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the run does not get on"
        time.sleep(0.002)


EPOCHS = 150
TRAIN = (
    *("train", "digits", "--preset", "simple", "--as-train", "--epochs", str(EPOCHS)),
    *("--hidden", "16", "--set", "train.checkpoint_seconds=0", "--set", "self_training.pseudo_label_threshold=0.5"),
)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("uninterrupted")
    done = run(*TRAIN, "--out", "whole", cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "whole"


@pytest.mark.slow
def test_a_run_killed_with_kill_9_goes_on_bit_for_bit(tmp_path, uninterrupted):
    process = start(*TRAIN, "--out", "cut", cwd=tmp_path)
    wait_for_lines(process, tmp_path / "cut" / "metrics.jsonl", 5)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "cut" / "result.json").exists()
    done_before = len((tmp_path / "cut" / "metrics.jsonl").read_text().splitlines())
    assert 5 <= done_before < EPOCHS
    resumed = run("train", "--resume", "cut", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_run(uninterrupted, tmp_path / "cut")
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == sorted(
        path.name for path in uninterrupted.iterdir()
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_after_its_epoch_and_says_how_to_go_on(tmp_path, uninterrupted, number):
    command = [word.replace("checkpoint_seconds=0", "checkpoint_seconds=1000") for word in TRAIN]
    process = start(*command, "--out", "cut", cwd=tmp_path)
    wait_for_lines(process, tmp_path / "cut" / "metrics.jsonl", 5)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    epoch = len((tmp_path / "cut" / "metrics.jsonl").read_text().splitlines())
    assert err == f"legnn: interrupted after epoch {epoch}; continue with: legnn train --resume cut\n"
    assert out == ""
    state = tensors(tmp_path / "cut", "checkpoint.safetensors")
    assert int(next(value for name, value in state.items() if name.startswith("optimizer/step/"))) == epoch
    legnn.resume(tmp_path / "cut")
    assert_same_run(uninterrupted, tmp_path / "cut")
