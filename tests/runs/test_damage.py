"""A damaged, foreign or hostile run folder is refused in one sentence, and nothing in it is executed."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from tests.full_disk import files_of_at_most
from tests.graphs import small_data
from tests.named import arguments
from tests.runs.small_runs import QUICK

import legnn
from legnn.errors import InputError
from legnn.runs import RunFolder
from legnn.runs.tensors import load_tensors, save_tensors


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self):
        return Path.touch, (self.place,)


def truncate(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip_a_byte_of_a_tensor(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"a": torch.ones(2)}, path)


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(Bomb(path.parent / "executed")))


def torch_saved(path: Path) -> None:
    torch.save({"model": Bomb(path.parent / "executed")}, path)


DAMAGES = [truncate, flip_a_byte_of_a_tensor, empty, foreign, pickled, torch_saved]


def test_the_bomb_goes_off_where_it_is_unpickled_so_the_tests_below_say_something(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "executed")))
    assert (tmp_path / "executed").exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_and_nothing_executed(cut, damage):
    damage(cut / "checkpoint.safetensors")
    with pytest.raises(InputError, match=r"checkpoint\.safetensors is damaged.*restore it from a copy") as caught:
        legnn.resume(cut, small_data())
    assert "\n" not in str(caught.value)
    assert not (cut / "executed").exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_weights_are_refused_and_nothing_executed(finished, damage):
    damage(finished / "weights.safetensors")
    with pytest.raises(InputError, match=r"weights\.safetensors is damaged.*restore it from a copy"):
        legnn.Run.open(finished).predict(small_data())
    assert not (finished / "executed").exists()


def test_weights_in_place_of_a_checkpoint_are_refused(cut, finished):
    shutil.copy(finished / "weights.safetensors", cut / "checkpoint.safetensors")
    with pytest.raises(InputError, match=r"checkpoint\.safetensors is not a checkpoint"):
        legnn.resume(cut, small_data())


@pytest.mark.parametrize("old_and_new", [("hidden: 8", "hidden: 16"), ("backbone: gcn", "backbone: sage")])
def test_weights_or_a_checkpoint_that_do_not_fit_the_settings_are_refused(cut, finished, old_and_new):
    for folder in (cut, finished):
        text = (folder / "settings.yaml").read_text()
        assert old_and_new[0] in text
        (folder / "settings.yaml").write_text(text.replace(*old_and_new))
        (folder / "digests.json").unlink()
    with pytest.raises(InputError, match=r"weights\.safetensors belongs to other settings"):
        legnn.Run.open(finished).predict(small_data())
    with pytest.raises(InputError, match=r"the checkpoint in .* does not fit the settings\.yaml"):
        legnn.resume(cut, small_data())


def test_missing_weights_are_named(finished):
    (finished / "weights.safetensors").unlink()
    with pytest.raises(InputError, match=r"there is no file .*weights\.safetensors"):
        legnn.Run.open(finished).predict(small_data())


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": "a"}', '{"unknown": 1}'])
def test_a_damaged_card_of_the_data_is_named(finished, content):
    (finished / "data.json").write_text(content)
    with pytest.raises(InputError, match=r"data\.json is damaged .*restore it from a copy"):
        legnn.Run.open(finished).predict(small_data())


def test_a_damaged_result_is_named(finished):
    (finished / "result.json").write_text("{")
    with pytest.raises(InputError, match=r"result\.json is damaged"):
        legnn.resume(finished)


def test_a_damaged_journal_is_named(finished):
    (finished / "metrics.jsonl").write_text("{\n")
    with pytest.raises(InputError, match=r"metrics\.jsonl is damaged"):
        RunFolder.open(finished).logs()


def test_damaged_predictions_are_named(finished):
    truncate(finished / "predictions.parquet")
    with pytest.raises(InputError, match=r"predictions\.parquet could not be read"):
        legnn.Run.open(finished).predict(small_data())


def test_settings_that_would_execute_are_refused(finished):
    place = finished / "executed"
    (finished / "settings.yaml").write_text(f"!!python/object/apply:pathlib.Path.touch ['{place}']\n")
    with pytest.raises(InputError, match="is not YAML"):
        legnn.Run.open(finished).predict(small_data())
    assert not place.exists()


def test_an_unfinished_run_is_not_opened_and_left_as_it_is(cut):
    before = {path.name: path.read_bytes() for path in cut.iterdir()}
    with pytest.raises(InputError, match=f"cut is not finished; continue it with `resume={cut}`"):
        legnn.Run.open(cut)
    assert {path.name: path.read_bytes() for path in cut.iterdir()} == before


@pytest.mark.parametrize("missing", ["settings.yaml", "data.json"])
def test_a_folder_that_is_no_run_is_named_with_what_it_lacks(finished, missing):
    (finished / missing).unlink()
    with pytest.raises(InputError, match=f"is not a run folder: it has no {missing}"):
        legnn.Run.open(finished).predict()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no run folder .*nowhere"):
        legnn.resume(tmp_path / "nowhere")


def test_a_folder_of_seeds_is_answered_with_its_runs(tmp_path):
    legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=2, out=tmp_path / "runs")
    with pytest.raises(InputError, match="holds a run for each seed; name one of them: seed-0, seed-1"):
        legnn.Run.open(tmp_path / "runs").predict()


def test_tensors_and_numbers_come_back_as_they_were(tmp_path):
    tensors = {
        "a": torch.randn(3, 4),
        "b": torch.arange(5),
        "c": torch.tensor(2.5, dtype=torch.float64),
        "d": torch.empty(0, 3),
        "e": torch.tensor([True, False]),
        "f": torch.randn(4, 6).T,
    }
    meta = {"epoch": 3, "loss": float("inf"), "nested": {"a": [1, 2]}}
    save_tensors(tmp_path / "file.safetensors", tensors, meta)
    found, numbers = load_tensors(tmp_path / "file.safetensors")
    assert numbers == meta
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) and found[name].dtype == tensors[name].dtype for name in found)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file.safetensors"
    save_tensors(path, {"a": torch.ones(2)})
    before = path.read_bytes()
    with files_of_at_most(len(before)), pytest.raises(OSError, match="File too large"):
        save_tensors(path, {"a": torch.zeros(3)})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["file.safetensors"]


def test_the_card_remembers_what_the_data_was(finished):
    card = json.loads((finished / "data.json").read_text())
    assert (card["name"], card["nodes"], card["features"], card["classes"]) == ("small", 40, 5, [0, 1, 2])
