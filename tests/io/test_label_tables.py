"""Prior knowledge of the labels beside the tables: `labels` and `label_edges`."""

import pandas as pd
import pytest
import torch
from tests.graphs import small_data, table_folder
from tests.named import arguments

import legnn
from legnn.datasets import load
from legnn.errors import InputError

LABELS = "label,size,weight\nclass 2,5,0.5\nclass 0,1,-1\nclass 1,3,2\n"
LABEL_EDGES = "source,target\nclass 0,class 1\nclass 2,class 0\n"


@pytest.fixture
def tables(tmp_path):
    return table_folder(tmp_path / "tables", small_data())


def test_label_features_are_in_the_order_of_the_classes(tables):
    (tables / "labels.csv").write_text(LABELS)
    data = load(tables)
    assert data.class_names == ["class 0", "class 1", "class 2"]
    assert data.label_x.tolist() == [[1, -1], [3, 2], [5, 0.5]]
    assert data.label_x.dtype == torch.float32


def test_classes_that_are_numbers_find_their_rows(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data(), names=[30, 4, 100])
    (tables / "labels.csv").write_text("label,size\n100,3\n4,1\n30,2\n")
    data = load(tables)
    assert data.class_names == [4, 30, 100]
    assert data.label_x.tolist() == [[1], [2], [3]]


def test_label_tables_may_be_parquet_and_have_rows_for_other_classes(tables):
    frame = pd.DataFrame({"label": ["class 1", "other", "class 2", "class 0"], "size": [1.0, 9.0, 2.0, 0.0]})
    frame.to_parquet(tables / "labels.parquet")
    assert load(tables).label_x.tolist() == [[0], [1], [2]]


def test_the_label_column_may_have_another_name(tables):
    nodes = (tables / "nodes.csv").read_text()
    (tables / "nodes.csv").write_text(nodes.replace("id,label", "id,topic"))
    (tables / "labels.csv").write_text(LABELS.replace("label", "topic"))
    assert load(tables, label_column="topic").label_x.shape == (3, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "label,size\nclass 0,1\nclass 1,2\n",
            r"labels\.csv has no row for the class 'class 2'; every class needs one",
        ),
        ("label,words\nclass 0,a\nclass 1,b\nclass 2,c\n", r"labels\.csv has no numeric column"),
        ("label\nclass 0\nclass 1\nclass 2\n", r"labels\.csv has no numeric column"),
        ("name,size\nclass 0,1\n", r"labels\.csv has no column 'label'"),
        ("label,size\nclass 0,1\nclass 1,\nclass 2,3\n", "not finite"),
        ("label,size\nclass 0,1\nclass 1,big\nclass 2,3\n", r"labels\.csv, line 3, column 'size' has 'big'"),
    ],
)
def test_label_features_that_cannot_be_used_are_named(tables, content, message):
    (tables / "labels.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        load(tables)


def test_label_edges_are_a_matrix_whose_rows_are_targets(tables):
    (tables / "label_edges.csv").write_text(LABEL_EDGES)
    assert load(tables).label_adjacency.tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]


def test_label_edges_may_have_weights(tables):
    (tables / "label_edges.csv").write_text("source,target,weight\nclass 0,class 1,2\nclass 1,class 2,0.5\n")
    assert load(tables).label_adjacency.tolist() == [[0, 0, 0], [2, 0, 0], [0, 0.5, 0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "source,target\nclass 0,class 1\nclass 0,clas 2\n",
            r"label_edges\.csv, line 3, column 'target' names class 'clas 2'.*a label of some node",
        ),
        ("source,target,weight\nclass 0,class 1,-1\n", r"label_edges\.csv, line 2, column 'weight' has .*above 0"),
        ("source\nclass 0\n", r"label_edges\.csv has no column 'target'"),
    ],
)
def test_label_edges_that_cannot_be_used_are_named(tables, content, message):
    (tables / "label_edges.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        load(tables)


def test_without_such_tables_there_is_no_such_knowledge(tables):
    data = load(tables)
    assert data.label_x is None
    assert data.label_adjacency is None


@pytest.mark.parametrize("normalize", ["relation", "joint"])
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
def test_a_model_trains_with_given_label_features_and_label_edges(tables, tmp_path, backbone, normalize):
    (tables / "labels.csv").write_text(LABELS)
    (tables / "label_edges.csv").write_text(LABEL_EDGES)
    options = {"backbone": backbone, "normalize": normalize, "epochs": 4, "hidden": 8, "layers": 3}
    run = legnn.train(tables, **arguments(**options, label_features="given"), out=tmp_path / "run")
    assert run.settings.model.label_edges is True
    assert run.model.encoder.label_embedding.features.tolist() == [[1, -1], [3, 2], [5, 0.5]]
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(), run.predictions, check_exact=True)
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(tables), run.predictions, check_exact=True)
    plain = legnn.train(tables, **arguments(**options, label_edges=False))
    assert not plain.predictions["confidence"].equals(run.predictions["confidence"])
