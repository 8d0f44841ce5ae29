"""Runs on a prepared folder are those on the tables it was made from, bit for bit."""

import pandas as pd
import pytest
import torch
from tests.graphs import small_data, table_folder
from tests.named import arguments
from tests.typed_graphs import small_hetero, typed_folder, with_tags

import legnn
from legnn.errors import InputError, Interrupted
from legnn.runs import RunFolder

QUICK = {"epochs": 5, "hidden": 8, "device": "cpu"}


@pytest.fixture
def tables(tmp_path):
    return table_folder(tmp_path / "tables", small_data())


@pytest.fixture
def prepared(tmp_path, tables):
    legnn.prepare_folder(tables, tmp_path / "prepared")
    return tmp_path / "prepared"


def assert_same_run(mapped: RunFolder, plain: RunFolder) -> None:
    for name, value in plain.weights().items():
        assert torch.equal(mapped.weights()[name], value), name
    assert mapped.logs() == plain.logs()
    assert mapped.card == plain.card
    pd.testing.assert_frame_equal(mapped.predictions(), plain.predictions(), check_exact=True)
    times = ("seconds",)
    first, second = (vars(run.result()) for run in (mapped, plain))
    assert {k: v for k, v in first.items() if k not in times} == {k: v for k, v in second.items() if k not in times}


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gin"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_run_on_a_prepared_folder_is_that_on_the_tables(backbone, directed, tables, tmp_path):
    legnn.prepare_folder(tables, tmp_path / "prepared", undirected=not directed)
    legnn.train(tables, **arguments(**QUICK, backbone=backbone, undirected=not directed), out=tmp_path / "plain")
    legnn.train(tmp_path / "prepared", **arguments(**QUICK, backbone=backbone), out=tmp_path / "mapped")
    mapped = RunFolder.open(tmp_path / "mapped")
    assert_same_run(mapped, RunFolder.open(tmp_path / "plain"))
    assert mapped.settings.data.undirected is not directed


def test_weights_and_knowledge_of_labels_make_the_same_run_too(tmp_path):
    data = small_data(label_x=torch.rand(3, 2), label_adjacency=torch.rand(3, 3))
    data.edge_weight = torch.rand(data.edge_index.size(1)) + 0.5
    legnn.prepare_folder(data, tmp_path / "prepared")
    options = {**QUICK, "label_features": "given", "as_train": True}
    legnn.train(data, **arguments(**options), out=tmp_path / "plain")
    legnn.train(tmp_path / "prepared", **arguments(**options), out=tmp_path / "mapped")
    assert_same_run(RunFolder.open(tmp_path / "mapped"), RunFolder.open(tmp_path / "plain"))


@pytest.mark.parametrize("options", [{}, {"batch": 8, "fanout": "3"}], ids=["full", "batches"])
@pytest.mark.parametrize("computed", [False, True])
def test_several_node_types_make_the_same_run_too(computed, options, tmp_path):
    graph = small_hetero()
    tables = typed_folder(tmp_path / "tables", with_tags(graph) if computed else graph)
    place = tmp_path / "prepared"
    legnn.prepare_folder(tables, place, type_channels=7)
    plain = legnn.train(tables, **arguments(**options, **QUICK, type_channels=7), out=tmp_path / "plain")
    asked = iter([False, True])
    with pytest.raises(Interrupted):
        legnn.train(
            place, **arguments(**options, **QUICK), out=tmp_path / "mapped", should_stop=lambda: next(asked, True)
        )
    legnn.resume(tmp_path / "mapped")
    mapped = RunFolder.open(tmp_path / "mapped")
    assert_same_run(mapped, RunFolder.open(plain.folder))
    assert mapped.settings.data.type_channels == 7
    for run in (tmp_path / "plain", tmp_path / "mapped"):
        for data in (None, tables, place, legnn.load(place)):
            pd.testing.assert_frame_equal(legnn.Run.open(run).predict(data), plain.predictions, check_exact=True)


def test_a_graph_prepared_to_predict_another_type_is_refused(tmp_path):
    run = legnn.train(small_hetero(), **arguments(**QUICK), out=tmp_path / "run")
    other = small_hetero()
    for field in ("y", "train_mask", "val_mask", "test_mask"):
        other["author"][field] = other["paper"][field][:12]
        del other["paper"][field]
    legnn.prepare_folder(other, tmp_path / "prepared")
    for data in (tmp_path / "prepared", legnn.load(tmp_path / "prepared")):
        with pytest.raises(InputError, match="was prepared to predict 'author', but 'paper' is to be predicted"):
            legnn.Run.open(run.folder).predict(data)


def test_a_run_that_was_cut_off_goes_on(tables, prepared, tmp_path):
    legnn.train(tables, **arguments(**QUICK), out=tmp_path / "plain")
    asked = iter([False, True])
    with pytest.raises(Interrupted):
        legnn.train(prepared, **arguments(**QUICK), out=tmp_path / "mapped", should_stop=lambda: next(asked, True))
    legnn.resume(tmp_path / "mapped")
    assert_same_run(RunFolder.open(tmp_path / "mapped"), RunFolder.open(tmp_path / "plain"))


def test_a_graph_that_was_loaded_can_be_trained_on(prepared, tmp_path):
    run = legnn.train(legnn.load(prepared), **arguments(**QUICK), out=tmp_path / "memory")
    other = legnn.train(prepared, **arguments(**QUICK), out=tmp_path / "mapped")
    pd.testing.assert_frame_equal(run.predictions, other.predictions, check_exact=True)
    again = legnn.Run.open(run.folder).predict(legnn.load(prepared))
    pd.testing.assert_frame_equal(again, run.predictions, check_exact=True)


def test_predictions_go_from_either_to_either(tables, prepared, tmp_path):
    plain = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "plain")
    mapped = legnn.train(prepared, **arguments(**QUICK), out=tmp_path / "mapped")
    for run in (plain, mapped):
        for data in (None, tables, prepared):
            pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(data), plain.predictions, check_exact=True)


def test_a_run_on_a_prepared_folder_knows_the_columns_and_the_words_of_its_tables(tables, tmp_path):
    header, *rows = (tables / "nodes.csv").read_text().splitlines()
    rows = [f"{row},word{i % 4} word{i % 3}" for i, row in enumerate(rows)]
    (tables / "nodes.csv").write_text("\n".join([header.replace("id,", "key,") + ",words", *rows]) + "\n")
    options = {"id_column": "key", "text": "words", "text_channels": 3}
    legnn.prepare_folder(tables, tmp_path / "prepared", **options)
    plain = legnn.train(tables, **arguments(**options, **QUICK), out=tmp_path / "plain")
    mapped = legnn.train(tmp_path / "prepared", **arguments(**QUICK), out=tmp_path / "mapped")
    assert_same_run(RunFolder.open(mapped.folder), RunFolder.open(plain.folder))
    for data in (None, tables, tmp_path / "prepared"):
        pd.testing.assert_frame_equal(legnn.Run.open(mapped.folder).predict(data), plain.predictions, check_exact=True)


def test_a_graph_prepared_in_another_way_than_the_runs_is_not_predicted(tables, tmp_path):
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    legnn.prepare_folder(tables, tmp_path / "directed", undirected=False)
    with pytest.raises(InputError, match=r"was prepared with undirected = False and .* trained with True; prepare it"):
        legnn.Run.open(run.folder).predict(tmp_path / "directed")


def test_a_run_notices_that_its_folder_was_prepared_anew_from_other_data(tables, tmp_path):
    place = tmp_path / "prepared"
    legnn.prepare_folder(tables, place)
    run = legnn.train(place, **arguments(**QUICK), out=tmp_path / "run")
    place.rename(tmp_path / "old")
    legnn.prepare_folder(table_folder(tmp_path / "other", small_data(seed=1)), place)
    with pytest.raises(InputError, match="is a run on other data"):
        legnn.Run.open(run.folder).predict()
