"""What was changed in a run folder, or is missing in it, is noticed: a run continues as it began, or not at all."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import save_file
from tests.graphs import small_data
from tests.named import arguments
from tests.runs.small_runs import QUICK

import legnn
from legnn.config import ResolvedSettings
from legnn.errors import FolderInUse, InputError, LegnnError
from legnn.locks import hold_folder
from legnn.runs import RunFolder
from legnn.sweep.seeds import resume_seeds, train_seeds


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    "change", [("seed: 0", "seed: 1"), ("dropout: 0.0", "dropout: 0.5"), ("folds: 10", "folds: 5")]
)
def test_settings_that_were_changed_by_hand_are_refused_with_what_to_do(change, cut):
    replaced(cut / "settings.yaml", *change)
    message = r"settings\.yaml was changed after the run began; restore it .* give it as `config` and another `out`"
    with pytest.raises(InputError, match=message):
        legnn.resume(cut, small_data())


def test_settings_of_a_finished_run_that_were_changed_are_refused(finished):
    replaced(finished / "settings.yaml", "folds: 10", "folds: 5")
    with pytest.raises(InputError, match=r"settings\.yaml was changed"):
        legnn.Run.open(finished)


def test_settings_cut_anywhere_do_not_resume(cut):
    path = cut / "settings.yaml"
    content = path.read_bytes()
    whole = RunFolder(cut).settings
    for end in range(0, len(content), 29):
        path.write_bytes(content[:end])
        try:
            found = RunFolder(cut).settings
        except InputError as error:
            said = str(error)
        else:
            pytest.fail(f"cut after {end} bytes: {found}")
        assert "\n" not in said
        try:
            # nor are they taken where the folder has no digests
            assert ResolvedSettings.from_yaml(path) == whole
        except InputError:
            continue


def test_a_card_of_the_data_that_was_changed_is_refused(cut):
    replaced(cut / "data.json", '"nodes": 40', '"nodes": 41')
    with pytest.raises(InputError, match=r"data\.json was changed after the run began; restore it from a copy"):
        legnn.resume(cut, small_data())


@pytest.mark.parametrize("change", [("epoch", 1), ("steps", 7), ("seconds", 0.0)])
def test_numbers_of_a_checkpoint_that_were_changed_are_refused(change, cut):
    path = cut / "checkpoint.safetensors"
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["legnn"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header["meta"][change[0]] = change[1]
    save_file(tensors, path, metadata={"legnn": json.dumps(header)})
    with pytest.raises(
        InputError, match=r"checkpoint\.safetensors is damaged \(its contents do not match its digest\)"
    ):
        legnn.resume(cut, small_data())


def test_a_finished_run_that_lost_its_result_is_not_trained_again(finished):
    (finished / "result.json").unlink()
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    with pytest.raises(InputError, match=r"has weights and neither a result\.json nor a checkpoint"):
        legnn.resume(finished, small_data())
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before


@pytest.mark.parametrize("missing", ["settings.yaml", "result.json"])
def test_a_finished_seed_that_lost_a_file_is_not_trained_again(missing, seeds):
    (seeds / "seed-1" / missing).unlink()
    before = {path: path.read_bytes() for path in seeds.glob("seed-1/*")}
    with pytest.raises(InputError, match=r"seed-1(/settings\.yaml| has weights)"):
        resume_seeds(seeds, small_data())
    assert {path: path.read_bytes() for path in before} == before


def test_a_seed_that_was_removed_is_trained_again_and_that_is_said(seeds):
    shutil.rmtree(seeds / "seed-1")
    summary = resume_seeds(seeds, small_data()).summary
    assert str(summary.notes[-1]) == "Trained again, for it was no longer in the folder: seed-1."


def test_settings_of_several_seeds_that_were_changed_are_refused(seeds):
    replaced(seeds / "seeds.json", '"model.hidden": 8', '"model.hidden": 9')
    with pytest.raises(InputError, match=r"seeds\.json was changed after the run began"):
        resume_seeds(seeds, small_data())


@pytest.mark.parametrize("seeds_there", [[], [-1], [1, 1], ["0"], None])
def test_a_list_of_seeds_that_is_none_is_refused(seeds_there, seeds):
    (seeds / "seeds.json").write_text(json.dumps({"seeds": seeds_there, "preset": "simple", "values": {}}))
    with pytest.raises(InputError, match=r"seeds\.json is damaged"):
        resume_seeds(seeds, small_data())


def test_a_folder_that_was_only_half_made_is_explained_and_made_anew(cut, tmp_path):
    place = tmp_path / "half"
    place.mkdir()
    for name in ("data.json", "digests.json"):
        shutil.copy(cut / name, place / name)
    (place / ".settings.yaml.0123abcd.partial").write_text("preset")
    with pytest.raises(InputError, match=r"was only half made; train again with `out=.*half`, which makes it anew"):
        legnn.resume(place, small_data())
    legnn.train(small_data(), **arguments(**QUICK), out=place)
    assert RunFolder.open(place).is_finished
    assert not list(place.glob(".*"))


def test_a_file_of_ones_own_is_not_taken_for_a_half_made_run(tmp_path):
    (tmp_path / "data.json").write_text("{}")
    with pytest.raises(InputError, match="is already there"):
        legnn.train(small_data(), **arguments(**QUICK), out=tmp_path)
    assert (tmp_path / "data.json").read_text() == "{}"


@pytest.mark.parametrize("values", [{"hidden": 10**8}, {"hidden": 10**12}, {"lr": float("inf")}, {"layers": 10**9}])
def test_settings_that_no_machine_can_train_are_refused_before_a_folder_is_made(values, tmp_path):
    with pytest.raises(LegnnError) as caught:
        legnn.train(small_data(), **arguments(**{**QUICK, **values}), out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_every_writer_is_refused_where_another_writes_and_every_reader_is_not(runs, cut, finished, seeds, tmp_path):
    before = {path: path.read_bytes() for path in cut.iterdir()}
    with hold_folder(cut), hold_folder(finished), hold_folder(seeds), hold_folder(tmp_path / "new"):
        for write in (
            lambda: legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "new"),
            lambda: legnn.train(small_data(), **arguments(**QUICK), out=cut),
            lambda: legnn.resume(cut, small_data()),
            lambda: train_seeds(small_data(), **arguments(**QUICK), seeds=2, out=tmp_path / "new"),
            lambda: resume_seeds(seeds, small_data()),
            lambda: legnn.auto(small_data(), out=tmp_path / "new", budget=5),
            lambda: legnn.prepare_folder(small_data(), tmp_path / "new"),
        ):
            with pytest.raises(FolderInUse, match="is writing to"):
                write()
        assert len(legnn.Run.open(finished).predict(small_data())) == 40
        assert len(RunFolder.open(cut).logs()) == 2
    assert {path: path.read_bytes() for path in cut.iterdir()} == before
