"""Edge tables of any size: the same edges as in one piece, and no more memory than claimed."""

import contextlib
import pty
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from benchmarks.tables import measure_in_a_process, write_edges
from hypothesis import given, settings
from hypothesis import strategies as st

from legnn.config import DataSettings
from legnn.errors import InputError
from legnn.io import progress
from legnn.io.columns import NodeIndex, as_keys, find
from legnn.io.edge_tables import BLOCK, LARGE, ROWS, open_edges, read_edges, read_end_ids

IDS = {
    "counted": list(range(9)),
    "scattered": [5, -3, 10**17, 0, 77, 8, 1, 2, 3],
    "text": ["a", "007", "7", "1.0", "b c", "é", "0", "-1", "x"],
}


LONG = ROWS + 50
"""Rows of a table that is read in several parts, whether it is Parquet or CSV."""


def write(path: Path, source, target, weight=None, **others) -> Path:
    """Writes a table of edges, of lists or arrays."""
    columns = {
        "source": source,
        "target": target,
        **({} if weight is None else {"weight": weight}),
        **others,
    }
    table = pa.table(columns)
    if path.suffix == ".csv":
        pacsv.write_csv(table, path, pacsv.WriteOptions(quoting_style="needed"))
    else:
        pq.write_table(table, path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", IDS)
def test_edges_read_in_parts_are_in_the_order_of_the_rows(kind, suffix, tmp_path):
    keys = pa.array(IDS[kind])
    random = np.random.default_rng(0)
    edge_index = random.integers(0, len(keys), (2, LONG))
    weight = random.random(LONG).astype(np.float32)
    path = write(tmp_path / f"edges{suffix}", *map(keys.take, edge_index), weight, since=np.full(LONG, 2020))
    assert suffix == ".parquet" or path.stat().st_size > 2 * BLOCK
    edges = read_edges(open_edges(path), keys, keys, DataSettings())
    assert edges.edge_index.dtype == np.int64
    assert np.array_equal(edges.edge_index, edge_index)
    assert np.array_equal(edges.weight, weight)
    assert edges.unused == ["since"]


def test_source_and_target_may_be_of_different_node_tables(tmp_path):
    path = write(tmp_path / "edges.csv", ["1", "2", "1"], ["ann", "bob", "cid"])
    edges = read_edges(open_edges(path), pa.array([2, 1]), pa.array(["cid", "ann", "bob"]), DataSettings())
    assert edges.edge_index.tolist() == [[1, 0, 1], [1, 2, 0]]
    assert edges.weight is None
    assert edges.unused == []


def named(suffix: str, row: int) -> str:
    """How a message names a row, as a regular expression."""
    text = f"{row + 2:,}" if suffix.endswith("csv") else f"{row:,}"
    digits = text.replace(",", ",?")
    return f"line {digits}" if suffix.endswith("csv") else rf"row {digits} \(counting from 0\)"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_first_bad_row_is_named_and_all_are_counted(suffix, tmp_path):
    source = np.arange(LONG) % 9
    target, first = source.copy(), ROWS + 20
    target[[first, first + 1, first + 10]] = 99, 98, 97
    path = write(tmp_path / f"edges{suffix}", source, target)
    ids = pa.array(range(9))
    with pytest.raises(InputError, match=rf"{named(suffix, first)}, column 'target' names node 99, .*\(3 such edges\)"):
        read_edges(open_edges(path), ids, ids, DataSettings())
    weight = np.ones(LONG)
    weight[first + 5 :] = 0.0
    path = write(tmp_path / f"edges{suffix}", source, source, weight)
    row, zero = named(suffix, first + 5), "0" if suffix == ".csv" else "0.0"
    with pytest.raises(InputError, match=rf"{row}, column 'weight' has {zero}; a weight"):
        read_edges(open_edges(path), ids, ids, DataSettings())


def test_a_row_that_is_too_long_far_down_is_named(tmp_path):
    path = write(tmp_path / "edges.csv", np.zeros(LONG, int), np.ones(LONG, int))
    assert path.stat().st_size > BLOCK
    path.write_text(path.read_text() + "1,2,3\n")
    with pytest.raises(InputError, match=r"edges\.csv could not be read: .*Expected 2 columns, got 3"):
        read_edges(open_edges(path), pa.array([0, 1]), pa.array([0, 1]), DataSettings())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_ids_of_an_end_are_of_one_kind_however_the_parts_are_cut(suffix, tmp_path):
    def table(name: str, ids: list) -> Path:
        """Several parts of rows with the first id, and the others at the end."""
        source = pa.concat_arrays([pa.repeat(pa.array(ids)[0], 2 * LONG), pa.array(ids)[1:]])
        return write(tmp_path / f"{name}.{suffix}", source, np.zeros(len(source), int))

    numbers = table("numbers", [7, 3, 7])
    assert sorted(read_end_ids(open_edges(numbers), "source", "source_column").to_pylist()) == [3, 7]
    mixed = table("mixed", ["7", "007", "a"])
    assert sorted(read_end_ids(open_edges(mixed), "source", "source_column").to_pylist()) == ["007", "7", "a"]
    fractions = table("fractions", [1.0, 0.5])
    assert read_end_ids(open_edges(fractions), "source", "source_column").type == pa.string()
    gap = table("gap", ["a", None])
    with pytest.raises(
        InputError, match=rf"gap\.{suffix}, {named(suffix, 2 * LONG)}, has no id in column 'source'; every edge has two"
    ):
        read_end_ids(open_edges(gap), "source", "source_column")
    with pytest.raises(InputError, match=r"has no column 'from'.*, and source_column says which to use"):
        read_end_ids(open_edges(gap), "from", "source_column")


def test_each_end_is_named_by_its_own_kind(tmp_path):
    path = write(tmp_path / "edges.csv", ["a", "b"], [0, 9])
    ids = (pa.array(["a", "b"]), pa.array([0, 1]))
    with pytest.raises(InputError, match="line 3, column 'target' names paper node 9, which is not in the node table"):
        read_edges(open_edges(path), *ids, DataSettings(), noun=("author node", "paper node"))


def test_weights_must_be_numbers(tmp_path):
    path = write(tmp_path / "edges.parquet", [0], [1], [pd.Timestamp("2020-01-01")])
    with pytest.raises(InputError, match=r"column 'weight' of .* is of the type timestamp.*; weights must be numbers"):
        read_edges(open_edges(path), pa.array([0, 1]), pa.array([0, 1]), DataSettings())


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
def test_lines_may_end_as_they_like(text, tmp_path):
    path = tmp_path / "edges.csv"
    path.write_bytes(text.encode())
    edges = read_edges(open_edges(path), pa.array(["a", "b"]), pa.array(["a", "b"]), DataSettings())
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


def test_a_large_file_gets_a_bar_in_a_terminal_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    path, ids = tmp_path / "edges.parquet", pa.array([0, 1])
    table = pa.table({"source": [0, 1], "target": [1, 0], "note": ["a" * (LARGE // 2), "b" * (LARGE // 2)]})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    assert path.stat().st_size >= LARGE
    read_edges(open_edges(path), ids, ids, DataSettings())
    assert capsys.readouterr().err == ""
    reader, writer = pty.openpty()
    with open(reader, "rb", buffering=0) as screen:
        with open(writer, "w") as terminal, contextlib.redirect_stderr(terminal):
            read_edges(open_edges(path), ids, ids, DataSettings())
        assert b"reading edges.parquet" in screen.read(10_000)
    with progress.progress_bar("small", 1, visible=False) as done:
        done(1)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("one_group", [False, True])
def test_reading_takes_no_more_than_twice_the_memory_of_the_edges(one_group, tmp_path):
    edges, nodes = 6_000_000, 600_000
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
