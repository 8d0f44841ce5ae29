"""Runs on tables with columns of several kinds: what was fitted travels with the run."""

import numpy as np
import pandas as pd
import pytest
from tests.io.test_column_features import mixed, write
from tests.named import arguments
from tests.typed_graphs import small_hetero, typed_folder

import legnn
from legnn.errors import InputError

QUICK = {"epochs": 3, "hidden": 8, "layers": 2, "fanout": "all", "lr": 0.01}


def probabilities(run, data=None):
    return legnn.Run.open(run.folder).predict_proba(data).sort_index()


def test_a_run_predicts_reordered_tables_with_identical_probabilities(tmp_path):
    run = legnn.train(write(tmp_path / "tables", mixed()), **arguments(**QUICK, text="about"), out=tmp_path / "run")
    other = mixed()
    other = other[[*reversed(other.columns)]].assign(price=3.5, topic="new")
    for suffix in (".csv", ".parquet"):
        # words are those of the run, and rows do not matter
        found = probabilities(run, write(tmp_path / f"other{suffix}", other, suffix))
        pd.testing.assert_frame_equal(found, probabilities(run), check_exact=True)


def test_what_was_done_to_the_columns_is_kept_in_the_run(tmp_path):
    run = legnn.train(write(tmp_path / "tables", mixed()), **arguments(**QUICK), out=tmp_path / "run")
    note = "Features of nodes.csv: size as numbers;"
    assert any(one.text.startswith(note) for one in legnn.Run.open(run.folder).result.notes)
    assert any(one.text.startswith(note) for one in legnn.Run.open(run.folder).card.notes)


def test_a_graph_whose_columns_were_fitted_on_itself_is_refused(tmp_path):
    run = legnn.train(write(tmp_path / "tables", mixed()), **arguments(**QUICK), out=tmp_path / "run")
    other = write(tmp_path / "other", mixed().assign(color="pink").replace({"about": {"iron steel": "lake river"}}))
    with pytest.raises(InputError, match="made of its tables in another way than those of the run; give its tables"):
        legnn.Run.open(run.folder).predict(legnn.load(other, training=False))
    assert len(legnn.Run.open(run.folder).predict(other)) == 24


def test_a_run_on_a_feature_file_does_not_take_columns_for_it(tmp_path):
    tables = write(tmp_path / "tables", mixed())
    np.save(tables / "features.npy", np.random.default_rng(0).normal(size=(24, 4)))
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    (tables / "features.npy").unlink()
    with pytest.raises(InputError, match="made of its tables in another way"):
        legnn.Run.open(run.folder).predict(tables)


def test_each_node_type_has_columns_of_its_own(tmp_path):
    folder = typed_folder(tmp_path / "tables", small_hetero())
    path = folder / "nodes" / "author.csv"
    authors = pd.read_csv(path)
    authors["country"] = np.array(["Peru", "Chad"])[np.arange(len(authors)) % 2]
    authors["about"] = np.array(["apple pear", "iron steel", "lake"])[np.arange(len(authors)) % 3]
    authors.to_csv(path, index=False)
    run = legnn.train(folder, **arguments(**QUICK, text="about"), out=tmp_path / "run")
    assert {"country=Chad", "country=Peru"} <= set(run.card.type_columns[run.card.types.index("author")])
    before = probabilities(run)
    authors[[*reversed(authors.columns)]].assign(more=1).to_csv(path, index=False)
    pd.testing.assert_frame_equal(probabilities(run, folder), before, check_exact=True)
    authors.drop(columns="country").to_csv(path, index=False)
    with pytest.raises(InputError, match=r"author\.csv has no column 'country'"):
        legnn.Run.open(run.folder).predict(folder)
