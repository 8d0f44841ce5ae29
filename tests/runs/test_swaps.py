"""Files of another run in the place of a run's own, and files that were edited, are noticed though each is whole."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from tests.graphs import small_data, table_folder
from tests.named import arguments
from tests.runs.small_runs import QUICK, cut_short
from typer.testing import CliRunner

import legnn
from legnn.cli import make_app
from legnn.errors import InputError
from legnn.runs import RunFolder
from legnn.runs.ensemble import Member, write_ensemble
from legnn.sweep.seeds import train_seeds


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    tables = table_folder(place / "tables", small_data())
    for seed, other in ((0, ""), (1, "other-")):
        legnn.train(tables, **arguments(**QUICK, seed=seed), out=place / f"{other}finished")
        cut_short(tables, place / f"{other}cut", seed=seed)
    train_seeds(tables, **arguments(**QUICK), seeds=2, out=place / "seeds")
    return place


@pytest.mark.parametrize("name", ["weights.safetensors"])
def test_a_file_of_another_run_is_not_opened_as_that_of_this_one(name, finished, runs):
    shutil.copy(runs / "other-finished" / name, finished / name)
    with pytest.raises(InputError, match=rf"{name.replace('.', '[.]')} was changed after the run began"):
        legnn.Run.open(finished)


def test_a_run_that_lost_how_columns_became_features_does_not_fit_them_anew(finished, runs):
    (finished / "columns.safetensors").unlink()
    with pytest.raises(InputError, match=r"there is no file .*columns\.safetensors; restore it"):
        legnn.Run.open(finished).predict(runs / "tables")


def test_a_checkpoint_of_another_run_is_not_continued(cut, runs):
    shutil.copy(runs / "other-cut" / "checkpoint.safetensors", cut)
    before = {path.name: path.read_bytes() for path in cut.iterdir()}
    with pytest.raises(InputError, match=r"the checkpoint in .* does not fit the settings\.yaml and data\.json"):
        legnn.resume(cut)
    assert {path.name: path.read_bytes() for path in cut.iterdir()} == before


def edit_first_line(path: Path) -> None:
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text(json.dumps({**json.loads(first), "val_loss": 0.999}) + "\n" + "".join(others))


def test_a_log_that_was_edited_is_noticed_in_a_finished_run_and_when_one_is_continued(finished, cut):
    for folder in (finished, cut):
        edit_first_line(folder / "metrics.jsonl")
    with pytest.raises(InputError, match=r"metrics\.jsonl was changed after the run began"):
        RunFolder(finished).logs()
    with pytest.raises(InputError, match=r"metrics\.jsonl does not hold the epochs of the checkpoint beside it"):
        legnn.resume(cut)


def test_predictions_that_the_command_writes_anew_are_those_of_the_run(finished):
    done = CliRunner().invoke(make_app(), ["predict", str(finished), "--top", "2"])
    assert done.exit_code == 0, done.output
    assert len(pd.read_parquet(finished / "predictions.parquet").columns) > 4
    assert len(legnn.Run.open(finished).predictions) == 40


def test_an_ensemble_that_was_edited_is_refused(runs, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(runs / "finished", tmp_path / "both" / name)
    members = [Member(folder=name, weight=0.5, propagation_steps=1, propagation_alpha=0.5) for name in ("one", "two")]
    write_ensemble(tmp_path / "both", members, 1.0, seconds=1.0)
    path = tmp_path / "both" / "ensemble.json"
    path.write_text(path.read_text().replace('"temperature": 1.0', '"temperature": 2.0'))
    with pytest.raises(InputError, match=r"ensemble\.json was changed"):
        legnn.open(tmp_path / "both")


def test_a_list_of_seeds_that_was_edited_is_refused(seeds):
    (seeds / "seeds.json").write_text('{"seeds": [0], "preset": "simple", "values": {}}')
    with pytest.raises(InputError, match=r"seeds\.json was changed"):
        legnn.open(seeds)


def test_finished_seeds_of_which_one_was_lost_do_not_predict_without_it(seeds):
    (seeds / "seed-1" / "result.json").unlink()
    with pytest.raises(InputError, match="seed-1 in it no longer is; restore it from a copy, or train it again"):
        legnn.open(seeds)


@pytest.mark.parametrize("name", ["metrics.jsonl", "settings.yaml", "data.json", ".lock"])
def test_link_in_the_folder_of_a_run_is_refused_and_its_target_untouched(name, cut, tmp_path):
    target = tmp_path / "target"
    path = cut / name
    target.write_bytes(path.read_bytes() if path.exists() else b"mine")
    before = target.read_bytes()
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    with pytest.raises(InputError, match=rf"{name.replace('.', '[.]')} is a symbolic link"):
        legnn.resume(cut)
    assert target.read_bytes() == before


def test_folder_of_a_run_may_be_a_link(finished, tmp_path):
    (tmp_path / "link").symlink_to(finished)
    assert len(legnn.Run.open(tmp_path / "link").predictions) == 40
