"""Edge tables of any size: the same edges as in one piece, and no more memory than claimed."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.tables import measure_in_a_process, write_edges
from hypothesis import given, settings
from hypothesis import strategies as st

from legnn.config import DataSettings
from legnn.errors import InputError
from legnn.io import edge_tables, progress
from legnn.io.columns import NodeIndex, as_keys, find
from legnn.io.edge_tables import read_edges, read_end_ids

IDS = {
    "counted": list(range(9)),
    "scattered": [5, -3, 10**17, 0, 77, 8, 1, 2, 3],
    "text": ["a", "007", "7", "1.0", "b c", "é", "0", "-1", "x"],
}


@pytest.fixture
def small_parts(monkeypatch):
    """Parts so small that a short table has many."""
    monkeypatch.setattr(edge_tables, "ROWS", 3)
    monkeypatch.setattr(edge_tables, "BLOCK", 64)


def write(path: Path, source: list, target: list, weight: list | None = None, **others: list) -> Path:
    table = pd.DataFrame({"source": source, "target": target, **({} if weight is None else {"weight": weight})})
    table = table.assign(**others)
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", IDS)
@pytest.mark.usefixtures("small_parts")
def test_many_parts_are_the_edges_in_the_order_of_the_rows(kind, suffix, tmp_path):
    ids = IDS[kind]
    random = np.random.default_rng(0)
    edge_index = random.integers(0, len(ids), (2, 50))
    weight = random.random(50).astype(np.float32)
    ends = [[ids[i] for i in end] for end in edge_index]
    path = write(tmp_path / f"edges{suffix}", *ends, weight.tolist(), since=[2020] * 50)
    keys = pa.array(ids)
    edges = read_edges(path, keys, keys, DataSettings())
    assert edges.edge_index.dtype == np.int64
    assert np.array_equal(edges.edge_index, edge_index)
    assert np.array_equal(edges.weight, weight)
    assert edges.unused == ["since"]


@pytest.mark.usefixtures("small_parts")
def test_source_and_target_may_be_of_different_node_tables(tmp_path):
    path = write(tmp_path / "edges.csv", ["1", "2", "1"], ["ann", "bob", "cid"])
    edges = read_edges(path, pa.array([2, 1]), pa.array(["cid", "ann", "bob"]), DataSettings())
    assert edges.edge_index.tolist() == [[1, 0, 1], [1, 2, 0]]
    assert edges.weight is None
    assert edges.unused == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.usefixtures("small_parts")
def test_the_first_bad_row_is_named_and_all_are_counted(suffix, tmp_path):
    source, target = list(range(9)) * 4, list(range(9)) * 4
    target[20], target[21], target[30] = 99, 98, 97
    path = write(tmp_path / f"edges{suffix}", source, target)
    row = "line 22" if suffix == ".csv" else r"row 20 \(counting from 0\)"
    ids = pa.array(range(9))
    with pytest.raises(InputError, match=rf"{row}, column 'target' names node 99, .*\(3 such edges\)"):
        read_edges(path, ids, ids, DataSettings())
    weight = [1.0] * 25 + [0.0] * 11
    path = write(tmp_path / f"edges{suffix}", source, source, weight)
    row = "line 27" if suffix == ".csv" else r"row 25 \(counting from 0\)"
    with pytest.raises(InputError, match=rf"{row}, column 'weight' has 0.0; a weight"):
        read_edges(path, ids, ids, DataSettings())


@pytest.mark.usefixtures("small_parts")
def test_a_row_that_is_too_long_far_down_is_named(tmp_path):
    path = write(tmp_path / "edges.csv", [0] * 40, [1] * 40)
    path.write_text(path.read_text() + "1,2,3\n")
    with pytest.raises(InputError, match=r"edges\.csv could not be read: .*Expected 2 columns, got 3"):
        read_edges(path, pa.array([0, 1]), pa.array([0, 1]), DataSettings())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.usefixtures("small_parts")
def test_the_ids_of_an_end_are_of_one_kind_however_the_parts_are_cut(suffix, tmp_path):
    numbers = write(tmp_path / f"numbers.{suffix}", [7, 3, 7] * 20, [0] * 60)
    assert sorted(read_end_ids(numbers, "source", "source_column").to_pylist()) == [3, 7]
    mixed = write(tmp_path / f"mixed.{suffix}", ["7"] * 40 + ["007", "a"], [0] * 42)
    assert sorted(read_end_ids(mixed, "source", "source_column").to_pylist()) == ["007", "7", "a"]
    fractions = write(tmp_path / f"fractions.{suffix}", [1.0] * 40 + [0.5], [0] * 41)
    assert read_end_ids(fractions, "source", "source_column").type == pa.string()
    gap = write(tmp_path / f"gap.{suffix}", ["a"] * 40 + [None], [0] * 41)
    row = "line 42" if suffix == "csv" else r"row 40 \(counting from 0\)"
    with pytest.raises(InputError, match=rf"gap\.{suffix}, {row}, has no id in column 'source'; every edge has two"):
        read_end_ids(gap, "source", "source_column")
    with pytest.raises(InputError, match=r"has no column 'from'.*, and source_column says which to use"):
        read_end_ids(gap, "from", "source_column")


def test_each_end_is_named_by_its_own_kind(tmp_path):
    path = write(tmp_path / "edges.csv", ["a", "b"], [0, 9])
    ids = (pa.array(["a", "b"]), pa.array([0, 1]))
    with pytest.raises(InputError, match="line 3, column 'target' names paper node 9, which is not in the node table"):
        read_edges(path, *ids, DataSettings(), what=("author node", "paper node"))


def test_weights_must_be_numbers(tmp_path):
    path = write(tmp_path / "edges.parquet", [0], [1], [pd.Timestamp("2020-01-01")])
    with pytest.raises(InputError, match=r"column 'weight' of .* is of the type timestamp.*; weights must be numbers"):
        read_edges(path, pa.array([0, 1]), pa.array([0, 1]), DataSettings())


@pytest.mark.parametrize(
    "text",
    [
        "source,target\na,b\nb,a",
        "source,target\r\na,b\r\nb,a\r\n",
        "source,target\ra,b\rb,a\r",
        "\n\nsource,target\n\n\na,b\n\nb,a\n\n\n",
        'source,target,note\n"a","b","two\nlines"\nb,a,\n',
    ],
)
@pytest.mark.usefixtures("small_parts")
def test_lines_may_end_as_they_like(text, tmp_path):
    path = tmp_path / "edges.csv"
    path.write_bytes(text.encode())
    edges = read_edges(path, pa.array(["a", "b"]), pa.array(["a", "b"]), DataSettings())
    assert edges.edge_index.tolist() == [[0, 1], [1, 0]]


KEYS = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-3, 12)), min_size=1).map(lambda keys: pa.array(keys, pa.int64())),
    st.lists(st.one_of(st.none(), st.sampled_from(["0", "7", "007", "a", "1.5"])), min_size=1).map(
        lambda keys: pa.array(keys, pa.string())
    ),
    st.lists(st.one_of(st.none(), st.sampled_from([0.0, 1.0, 1.5])), min_size=1).map(
        lambda keys: as_keys(pa.chunked_array([pa.array(keys, pa.float64())]), from_text=False)
    ),
)


@settings(deadline=None)
@given(KEYS, st.sampled_from([range(8), [7, 0, 3], ["7", "007", "0"], ["a", "1.5", "1"]]))
def test_an_index_finds_what_a_search_finds(keys, ids):
    ids = pa.array(ids)
    assert NodeIndex(ids).find(keys).tolist() == find(keys, ids).tolist()


def test_a_large_file_gets_a_bar_where_somebody_sees_it(tmp_path, monkeypatch, capsys):
    path = write(tmp_path / "edges.parquet", [0, 1], [1, 0])
    ids = pa.array([0, 1])
    monkeypatch.setattr(edge_tables, "LARGE", 1)
    read_edges(path, ids, ids, DataSettings())
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    read_edges(path, ids, ids, DataSettings())
    assert "reading edges.parquet" in capsys.readouterr().err
    with progress.progress_bar("small", 1, visible=False) as done:
        done(1)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("one_group", [False, True])
def test_reading_takes_no_more_than_twice_the_memory_of_the_edges(one_group, tmp_path):
    edges, nodes = 20_000_000, 2_000_000
    path = tmp_path / "edges.parquet"
    if one_group:
        ends = np.random.default_rng(0).integers(0, nodes, (2, edges))
        table = pa.table({"source": ends[0], "target": ends[1], "note": np.zeros(edges)})
        pq.write_table(table, path, row_group_size=edges, compression="none")
    else:
        write_edges(path, edges, nodes, weighted=True)
    found = measure_in_a_process(path, nodes)
    assert found["arrays"] == edges * (16 if one_group else 20)
    assert found["peak"] < 2 * found["arrays"]
