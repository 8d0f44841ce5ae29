"""A folder of tables: what is read, and what a mistake in it is answered with."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from legnn.datasets import load
from legnn.errors import InputError

NODES = """id,label,split,size,weight
a,red,train,1,0.5
b,blue,train,2,0.25
c,red,val,3,0
d,blue,test,4,1e-3
e,,,5,-1
"""
EDGES = """source,target
a,b
b,c
c,d
d,e
"""


def write(folder: Path, nodes: str = NODES, edges: str = EDGES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder


def write_parquet(folder: Path, nodes: pd.DataFrame, edges: pd.DataFrame) -> Path:
    nodes.to_parquet(folder / "nodes.parquet")
    edges.to_parquet(folder / "edges.parquet")
    return folder


def chain(labels: list, ids: list | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes in a chain, in every part of the split in turn."""
    ids = list(range(len(labels))) if ids is None else ids
    split = [("train", "train", "val", "test")[i % 4] if labels[i] is not None else None for i in range(len(labels))]
    nodes = pd.DataFrame({"id": ids, "label": labels, "split": split, "size": np.arange(len(labels))})
    return nodes, pd.DataFrame({"source": ids[:-1], "target": ids[1:]})


def test_a_folder_of_tables_among_the_data_is_known_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    write(tmp_path / "colors")
    (tmp_path / "empty").mkdir()
    assert load("colors").num_nodes == 5
    with pytest.raises(InputError, match="unknown data set 'empty'"):
        load("empty")


def test_a_folder_of_csv_tables_is_read(tmp_path):
    data = load(write(tmp_path / "colors"), undirected=False, self_loops=False)
    assert data.name == "colors"
    assert data.node_id.tolist() == ["a", "b", "c", "d", "e"]
    assert data.class_names == ["blue", "red"]
    assert data.y.tolist() == [1, 0, 1, 0, -1]
    assert data.feature_names == ["size", "weight"]
    assert data.x.dtype == torch.float32
    assert data.x[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert data.adjacency.edge_index.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert data.train_mask.tolist() == [True, True, False, False, False]
    assert data.val_mask.tolist() == [False, False, True, False, False]
    assert data.test_mask.tolist() == [False, False, False, True, False]
    assert data.adjacency.weight is None
    assert data.notes == []


def test_the_source_may_be_a_string(tmp_path):
    assert load(str(write(tmp_path))).num_nodes == 5


def test_weights_are_read_and_averaged_over_both_directions(tmp_path):
    edges = "source,target,weight\na,b,1\nb,a,3\nb,c,0.5\nc,d,1\nd,e,1\n"
    data = load(write(tmp_path, edges=edges), self_loops=False)
    assert data.adjacency.weight[:3].tolist() == [2.0, 2.0, 0.5]


def test_columns_may_have_other_names(tmp_path):
    nodes = NODES.replace("id,label,split", "key,color,part")
    edges = "from,to,strength\na,b,2\nb,c,2\nc,d,2\nd,e,2\n"
    names = {"id_column": "key", "label_column": "color", "split_column": "part"}
    names |= {"source_column": "from", "target_column": "to", "weight_column": "strength"}
    data = load(write(tmp_path, nodes, edges), self_loops=False, **names)
    assert data.class_names == ["blue", "red"]
    assert set(data.adjacency.weight.tolist()) == {2.0}


def test_split_names_may_be_written_several_ways(tmp_path):
    nodes = NODES.replace("red,val,", "red,Validation,").replace("a,red,train", "a,red, TRAIN ")
    data = load(write(tmp_path, nodes))
    assert data.val_mask.tolist() == [False, False, True, False, False]
    assert bool(data.train_mask[0])


def test_without_a_split_column_one_is_drawn_and_the_user_told(tmp_path):
    nodes = "id,label,size\n" + "".join(f"{i},{i % 2},{i}\n" for i in range(20))
    edges = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(19))
    folder = write(tmp_path, nodes, edges)
    data = load(folder)
    assert [int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)] == [12, 4, 4]
    assert data.notes[0].code == "split-drawn"
    assert not torch.equal(load(folder, split=1).train_mask, data.train_mask)


def test_a_class_may_be_called_na_and_an_id_null(tmp_path):
    data = load(write(tmp_path, NODES.replace("red", "NA").replace("\na,", "\nnull,"), EDGES.replace("a,", "null,")))
    assert data.class_names == ["NA", "blue"]
    assert data.node_id[0] == "null"


def test_whole_numbers_in_csv_become_int64_and_sort_by_size(tmp_path):
    nodes = "id,label,split,size\n1,10,train,1\n2,9,train,1\n3,10,val,1\n4,9,test,1\n"
    data = load(write(tmp_path, nodes, "source,target\n1,2\n2,3\n3,4\n"))
    assert data.node_id.dtype == np.int64
    assert data.class_names == [9, 10]


def test_codes_with_leading_zeros_stay_text(tmp_path):
    nodes = "id,label,split,size\n007,01,train,1\n7,1,train,1\n8,01,val,1\n9,1,test,1\n"
    data = load(write(tmp_path, nodes, "source,target\n007,7\n7,8\n8,9\n"))
    assert data.node_id.tolist() == ["007", "7", "8", "9"]
    assert data.class_names == ["01", "1"]
    assert data.provenance.raw_edges == 3


def test_parquet_keeps_text_as_text(tmp_path):
    nodes, edges = chain(["1", "0", "1", "0"], ids=["1", "2", "3", "4"])
    data = load(write_parquet(tmp_path, nodes, edges))
    assert data.class_names == ["0", "1"]
    assert data.node_id.tolist() == ["1", "2", "3", "4"]


def test_float_labels_with_gaps_become_whole(tmp_path):
    data = load(write_parquet(tmp_path, *chain([2.0, 10.0, 2.0, 10.0, None])))
    assert data.class_names == [2, 10]
    assert all(type(name) is int for name in data.class_names)
    assert data.y.tolist() == [0, 1, 0, 1, -1]


def test_fractions_stay_fractions(tmp_path):
    assert load(write_parquet(tmp_path, *chain([0.5, 1.5, 0.5, 1.5]))).class_names == [0.5, 1.5]


def test_categorical_columns_are_read(tmp_path):
    nodes, edges = chain(["x", "y", "x", "y"], ids=["p", "q", "r", "s"])
    nodes, edges = nodes.astype({"id": "category", "label": "category", "split": "category"}), edges.astype("category")
    data = load(write_parquet(tmp_path, nodes, edges))
    assert data.class_names == ["x", "y"]
    assert data.node_id.tolist() == ["p", "q", "r", "s"]


def test_ids_of_different_kinds_are_compared_as_text(tmp_path):
    nodes, edges = chain([0, 1, 0, 1])
    data = load(write_parquet(tmp_path, nodes, edges.astype(str)), undirected=False, self_loops=False)
    assert data.adjacency.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]


def test_the_row_numbers_pandas_writes_are_no_features(tmp_path):
    nodes, edges = chain([0, 1, 0, 1])
    nodes.index = [5, 6, 7, 8]
    parquet, text = tmp_path / "year=2020", tmp_path / "csv"
    parquet.mkdir()
    text.mkdir()
    assert load(write_parquet(parquet, nodes, edges)).feature_names == ["size"]
    assert load(write(text, nodes.to_csv(), edges.to_csv())).feature_names == ["size"]


def test_true_and_false_are_features(tmp_path):
    nodes, edges = chain([0, 1, 0, 1])
    nodes["small"] = nodes["size"] < 2
    data = load(write_parquet(tmp_path, nodes, edges))
    assert data.feature_names == ["size", "small"]
    assert data.x[:, 1].tolist() == [1, 1, 0, 0]


def test_columns_of_words_are_left_aside_with_one_note(tmp_path):
    nodes = NODES.replace("size,weight", "size,name").replace("0.5", "Ann").replace("0.25", "Bob")
    nodes = nodes.replace("3,0\n", "3,Cid\n").replace("1e-3", "Dee").replace("-1", "7")
    data = load(write(tmp_path, nodes))
    assert data.feature_names == ["size"]
    assert [*map(str, data.notes)] == [
        "Left aside in nodes.csv: name; their cells are different in nearly every row; "
        "the setting text names one whose words become features."
    ]


def test_a_feature_file_alone_is_the_features(tmp_path):
    folder = write(tmp_path)
    np.save(folder / "features.npy", np.arange(10).reshape(5, 2))
    data = load(folder)
    assert data.x.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert data.feature_names is None
    assert [*map(str, data.notes)] == ["Left aside in nodes.csv: size, weight; features.npy is the features."]


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(5)), st.permutations(range(4)))
def test_the_order_of_rows_only_orders_the_nodes(tmp_path_factory, node_order, edge_order):
    header, *rows = NODES.splitlines()
    edge_header, *edge_rows = EDGES.splitlines()
    nodes = "\n".join([header, *(rows[i] for i in node_order)]) + "\n"
    edges = "\n".join([edge_header, *(edge_rows[i] for i in edge_order)]) + "\n"
    data = load(write(tmp_path_factory.mktemp("permuted"), nodes, edges))
    plain = load(write(tmp_path_factory.mktemp("plain")))
    order = torch.tensor(node_order)
    for field in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(getattr(data, field), getattr(plain, field)[order])
    assert data.node_id.tolist() == plain.node_id[order.numpy()].tolist()
    assert data.class_names == plain.class_names
    there = {(int(order[s]), int(order[t])) for s, t in data.adjacency.edge_index.t()}
    assert there == set(map(tuple, plain.adjacency.edge_index.t().tolist()))


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (NODES, EDGES.replace("d,e", "d,z"), r"edges\.csv, line 5, column 'target' names node 'z', .*\(1 such edge\)"),
        (NODES, EDGES.replace("b,c", "\n\nb,z"), r"edges\.csv, line 5, column 'target' names node 'z'"),
        (NODES, EDGES.replace("b,c", ",c"), r"edges\.csv, line 3, column 'source' names no node"),
        (NODES.replace("b,blue", "a,blue"), EDGES, r"id 'a' of .* is there twice, in line 2 and line 3"),
        (NODES.replace("b,blue", ",blue"), EDGES, r"nodes\.csv, line 3, has no id in column 'id'"),
        (NODES.replace("c,red,val", "c,red,vla"), EDGES, r"line 4, column 'split' has 'vla' \(did you mean 'val'\?\)"),
        (NODES.replace("id,", "ID,"), EDGES, r"no column 'id' \(did you mean 'ID'\?\); it has 'ID', 'label'"),
        (NODES.replace("label", "class"), EDGES, r"no column 'label'.*label_column says which"),
        (NODES, EDGES.replace("target", "to"), r"edges\.csv has no column 'target'"),
        (NODES.replace(",3,0", ",three,0"), EDGES, r"nodes\.csv, line 4, column 'size' has 'three' where .*1 such"),
        (NODES.replace(",3,0", ",inf,0"), EDGES, "1 feature of .* the first at node 'c', column 'size'"),
        (NODES.replace(",3,0", ",1e300,0"), EDGES, "infinite, the first at node 'c', column 'size'"),
        (NODES.replace(",3,0", ",3"), EDGES, r"nodes\.csv could not be read: .*Expected 5 columns, got 4"),
        (NODES.replace(",3,0", ",3,0,0"), EDGES, r"nodes\.csv could not be read: .*Expected 5 columns, got 6"),
        (NODES.replace("size,weight", "size,size"), EDGES, "two columns named 'size'"),
        ("", EDGES, r"nodes\.csv could not be read"),
        (NODES.splitlines()[0] + "\n", EDGES, r"nodes\.csv has no rows"),
        (NODES, "source,target\n", r"edges\.csv has no rows"),
        (NODES.replace("blue", "red"), EDGES, "every label of .* is 'red'"),
        (NODES.replace("train", ""), EDGES, "no node of .* is for training"),
        (NODES.replace("val", ""), EDGES, "no node of .* is for validation; mark some 'val', or drop"),
        (NODES.replace("b,blue,train", "b,blue,"), EDGES, "test nodes but no training node of class 'blue'"),
        (NODES.replace("e,,,", "e,,test,"), EDGES, "1 test node of .* without a label, the first is 'e'"),
        (NODES, "source,target,weight\na,b,1\nb,c,-2\n", r"line 3, column 'weight' has -2; a weight must be"),
        (NODES, "source,target,weight\na,b,1\nb,c,\n", r"line 3, column 'weight' has nothing"),
        (NODES, "source,target,weight\na,b,1\nb,c,x\n", r"line 3, column 'weight' has 'x'"),
    ],
)
def test_a_mistake_in_a_table_is_named(nodes, edges, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        load(write(tmp_path, nodes, edges))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("column", ["split_column", "weight_column", "text"])
def test_a_column_asked_for_by_name_must_be_there(column, tmp_path):
    with pytest.raises(InputError, match=f"has no column 'mine'; it has .* and {column} says which"):
        load(write(tmp_path), **{column: "mine"})


def test_a_row_of_parquet_is_counted_from_zero(tmp_path):
    nodes, edges = chain([0, 1, 0, 1])
    edges.loc[1, "target"] = 99
    with pytest.raises(InputError, match=r"edges\.parquet, row 1 \(counting from 0\), column 'target' names node 99"):
        load(write_parquet(tmp_path, nodes, edges))


def test_a_line_is_the_one_an_editor_shows(tmp_path):
    nodes = NODES.replace("size,weight", "size,name").replace("0.5", '"two\nlines"').replace("c,red,val", "c,red,vla")
    with pytest.raises(InputError, match="line 5, column 'split' has 'vla'"):
        load(write(tmp_path, nodes))


def test_a_column_of_lists_is_not_an_id(tmp_path):
    nodes, edges = chain([0, 1, 0, 1])
    nodes["id"] = [[1], [2], [3], [4]]
    with pytest.raises(InputError, match=r"column 'id' .* must hold text or numbers"):
        load(write_parquet(tmp_path, nodes, edges))


def test_parquet_cut_short_is_named(tmp_path):
    write_parquet(tmp_path, *chain([0, 1, 0, 1]))
    path = tmp_path / "nodes.parquet"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match=r"nodes\.parquet could not be read"):
        load(tmp_path)


def test_text_that_is_not_utf8_is_named(tmp_path):
    write(tmp_path)
    (tmp_path / "nodes.csv").write_bytes(NODES.replace("red", "r\u00e9d").encode("latin-1"))
    with pytest.raises(InputError, match=r"nodes\.csv could not be read"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros((4, 2)), r"features\.npy has 4 rows and nodes\.csv has 5"),
        (np.zeros(5), "a row for each node"),
        (np.array(["a"] * 5), "a row for each node"),
        (np.array([[{}]] * 5), r"features\.npy could not be read: .*Python objects"),
        (np.full((5, 2), np.nan), "10 features of .* node 'a', column 0"),
    ],
)
def test_a_wrong_feature_file_is_named(features, message, tmp_path):
    np.save(write(tmp_path) / "features.npy", features)
    with pytest.raises(InputError, match=message):
        load(tmp_path)


def test_folders_that_are_not_there_or_not_folders_are_named(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"has no nodes\.parquet and no nodes\.csv"):
        load(tmp_path)
    write(tmp_path)
    with pytest.raises(InputError, match="is a file; give the folder"):
        load(tmp_path / "nodes.csv")
    write_parquet(tmp_path, *chain([0, 1, 0, 1]))
    with pytest.raises(InputError, match=r"has both nodes\.parquet and nodes\.csv"):
        load(tmp_path)


def test_a_table_with_a_split_has_no_second(tmp_path):
    with pytest.raises(InputError, match=r"split 3 of .* does not exist; choose 0"):
        load(write(tmp_path), split=3)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_whole_numbers_with_gaps_are_integer_classes_however_pandas_wrote_them(tmp_path, suffix):
    nodes, edges = chain([3, 0, 3, 0, None])
    assert nodes["label"].dtype == float
    if suffix == ".csv":
        nodes.to_csv(tmp_path / "nodes.csv", index=False)
        edges.to_csv(tmp_path / "edges.csv", index=False)
    else:
        write_parquet(tmp_path, nodes, edges)
    data = load(tmp_path)
    assert data.class_names == [0, 3]
    assert all(type(name) is int for name in data.class_names)
    assert data.y.tolist() == [1, 0, 1, 0, -1]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("count", "values"), [(300, 150), (20, 20)])
def test_labels_that_are_measurements_are_refused(tmp_path, suffix, count, values):
    nodes, edges = chain([0.25 + k % values for k in range(count)])
    if suffix == ".csv":
        nodes.to_csv(tmp_path / "nodes.csv", index=False)
        edges.to_csv(tmp_path / "edges.csv", index=False)
    else:
        write_parquet(tmp_path, nodes, edges)
    with pytest.raises(InputError, match=f"column 'label' of .* looks like regression: it holds {values} different"):
        load(tmp_path)


def test_half_stars_are_classes(tmp_path):
    data = load(write_parquet(tmp_path, *chain([0.5 * (k % 10) for k in range(400)])))
    assert data.num_classes == 10


def test_a_graph_without_features_has_those_of_its_edges_said_in_one_line(tmp_path):
    nodes, edges = chain([k % 2 for k in range(20)])
    data = load(write_parquet(tmp_path, nodes.drop(columns="size"), edges))
    assert data.x.shape == (20, 21)
    degree = torch.tensor([1.0, *[2.0] * 18, 1.0])
    assert torch.equal(data.x[:, -1], degree.log1p())
    assert data.provenance.computed_features == ["nodes"]
    assert [*map(str, data.notes)] == [
        f"{tmp_path.name} has no features: 20 eigenvectors of its graph and the degree of each node take their place, "
        "and the run can predict this graph alone."
    ]
    same = Data(y=data.y, edge_index=torch.tensor(edges.to_numpy().T.copy()))
    assert torch.equal(load(same).x, data.x)


def test_columns_are_not_read_where_features_are_computed(tmp_path):
    nodes, edges = chain([k % 2 for k in range(20)])
    nodes["size"] = ["1", "x", *["2"] * 18]
    assert load(write_parquet(tmp_path, nodes, edges), features="spectral", type_channels=4).x.shape == (20, 4)
