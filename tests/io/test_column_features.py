"""Columns as people have them: which kind they are, what they become, and that other tables get the same."""

import json
import math
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legnn.datasets import load
from legnn.errors import InputError
from legnn.io import TableFeatures
from legnn.io.column_features import BUCKETS, Column, fit_column
from legnn.io.columns import as_categories, parse_dates, parse_numbers
from legnn.io.table_features import ColumnFeatures
from legnn.io.table_files import Table

SPLITS = ("train", "train", "val", "test")


def table_of(**columns) -> Table:
    return Table(Path("nodes.parquet"), list(columns), pa.table(columns))


def features(column: Column, table: Table) -> np.ndarray:
    return ColumnFeatures([column]).transform(table)


def mixed(rows: int = 24) -> pd.DataFrame:
    """A table with a column of every kind."""
    k = np.arange(rows)
    return pd.DataFrame(
        {
            "id": [f"n{i}" for i in k],
            "label": np.array(["red", "blue"])[k % 2],
            "split": np.array(SPLITS)[k % 8 // 2],
            "size": np.where(k % 5 == 0, np.nan, k * 0.5),
            "color": np.where(k % 6 == 0, None, np.array(["cyan", "ocher", "pink"])[k % 3]),
            "born": pd.to_datetime("2020-01-01") + pd.to_timedelta(k, unit="D"),
            "is_new": k % 3 == 0,
            "about": np.array(["apple pear tree", "iron steel", "lake river"])[k % 3],
        }
    )


def write(folder: Path, nodes: pd.DataFrame, suffix: str = ".csv") -> Path:
    folder.mkdir(exist_ok=True)
    edges = pd.DataFrame({"source": nodes["id"][:-1].tolist(), "target": nodes["id"][1:].tolist()})
    for name, table in (("nodes", nodes), ("edges", edges)):
        path = folder / f"{name}{suffix}"
        table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_of_all_kinds_are_features_together_and_it_is_said_once(tmp_path, suffix):
    data = load(write(tmp_path, mixed(), suffix), text="about", text_channels=2)
    color = ["color=cyan", "color=ocher", "color=pink", "color is missing"]
    assert data.feature_names == ["size", "size is missing", *color, "born", "is_new", "about#0", "about#1"]
    x = dict(zip(data.feature_names, data.x.T.tolist(), strict=True))
    mean = math.fsum(0.5 * k for k in range(24) if k % 5) / 19
    assert x["size"] == pytest.approx([0.5 * k if k % 5 else mean for k in range(24)])
    assert x["size is missing"] == [float(k % 5 == 0) for k in range(24)]
    assert x["color=ocher"] == [float(k % 3 == 1) for k in range(24)]
    assert x["color=cyan"] == [float(k % 6 == 3) for k in range(24)]
    assert x["color is missing"] == [float(k % 6 == 0) for k in range(24)]
    assert x["born"] == [18262.0 + k for k in range(24)]
    assert x["is_new"] == [float(k % 3 == 0) for k in range(24)]
    assert [*map(str, data.notes)] == [
        f"Features of nodes{suffix}: size as numbers; is_new as 0 and 1; born as days since 1970; color (3 values) "
        "one-hot; about (2 features) as text; empty cells of size, color are marked in a column more, and numbers "
        "there are the mean."
    ]


def test_mixed_columns_are_not_taken_for_counts_of_words(tmp_path):
    assert not load(write(tmp_path, mixed())).facts().counts_features


def test_statistics_are_those_of_the_fitted_table_alone(tmp_path):
    fitted = load(write(tmp_path / "first", mixed())).table_features
    other = mixed().assign(size=100.0, color="pink")
    other.loc[0, ["size", "color"]] = None
    x = load(write(tmp_path / "other", other), table_features=fitted).x
    mean = math.fsum(0.5 * k for k in range(24) if k % 5) / 19
    assert x[:2, 0].tolist() == pytest.approx([mean, 100.0])
    assert x[:2, 1].tolist() == [1.0, 0.0]


def test_a_value_never_seen_is_none_of_the_known_and_an_empty_cell_is_not_marked_where_none_was():
    column = fit_column(table_of(c=["a", "b", "a", "b"]), "c")
    assert features(column, table_of(c=["b", "z", None])).tolist() == [[0, 1], [0, 0], [0, 0]]


def test_a_category_of_many_values_is_hashed_the_same_in_every_table():
    values = [f"city {k % 100}" for k in range(400)]
    column = fit_column(table_of(c=values), "c")
    assert column.kind == "hashed"
    x = features(column, table_of(c=values))
    assert x.shape == (400, BUCKETS)
    assert np.abs(x).sum(1).tolist() == [1.0] * 400
    assert set(np.unique(x)) == {-1.0, 0.0, 1.0}
    again = features(column, table_of(c=["city 7", "a new city", None]))
    assert np.array_equal(again[0], x[7])
    assert np.abs(again).sum(1).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, 2, None], "number"),
        (["1", " 2", "NA", "n/a", "-"], "number"),
        ([1.5, float("nan")], "number"),
        ([True, None, False], "boolean"),
        ([date(2020, 1, 2), None], "date"),
        (["2020-01-02", "2020-01-02T10:00:00Z", ""], "date"),
        (["yes", "no", "yes", "no"], "category"),
        (["1", "2", "X", "1", "2", "X", "1", "2"], "category"),
        (pa.array(["a", "b"]).dictionary_encode(), "category"),
        ([None, None], "empty"),
        ([float("nan"), float("nan")], "empty"),
        (["", ""], "empty"),
        (["a", "b", "c"], "different in nearly every row"),
        (["a", "a"], "the same in every row"),
        ([[1], [2]], "of the type list<item: int64>"),
    ],
)
def test_the_kind_of_a_column_is_that_of_its_cells(cells, kind):
    found = fit_column(table_of(c=cells), "c")
    assert (found.kind if isinstance(found, Column) else found) == kind


@pytest.mark.parametrize(
    ("fitted", "cells", "message"),
    [
        ([1, 2], [[1], [2]], r"column 'c' of nodes\.parquet is of the type list.*; it must hold a number"),
        ([1, 2], ["1", "many"], "row 1 .* column 'c' has 'many' where the other rows have numbers; write a number, or"),
        ([date(2020, 1, 2)], [1, 2], "is of the type int64; it must hold a date such as 2024-05-31"),
        ([date(2020, 1, 2)], ["2020-02-31"], "has '2020-02-31' where the other rows have dates such as"),
        ([True, False], ["maybe", "true"], "has 'maybe' where the other rows have true or false"),
        (["a", "b", "a", "b"], [date(2020, 1, 2)], "of the type date32.*; it must hold text"),
    ],
)
def test_a_cell_of_another_kind_is_named(fitted, cells, message):
    with pytest.raises(InputError, match=message):
        features(fit_column(table_of(c=fitted), "c"), table_of(c=cells))


def test_truth_values_may_be_written_in_words():
    column = fit_column(table_of(c=[True, True, False, None]), "c")
    assert features(column, table_of(c=["True", "false", "", "1"])).tolist() == [[1, 0], [0, 0], [1, 1], [1, 0]]


def test_a_category_that_looks_like_numbers_in_another_table_keeps_its_zeros(tmp_path):
    nodes = mixed()[["id", "label", "split"]].assign(code=np.array(["007", "x", "12"])[np.arange(24) % 3])
    first = load(write(tmp_path / "first", nodes))
    other = load(write(tmp_path / "other", nodes.assign(code="007")), table_features=first.table_features)
    assert first.feature_names == ["code=007", "code=12", "code=x"]
    assert other.x.tolist() == [[1, 0, 0]] * 24


@pytest.mark.parametrize("names", [{}, {"label_column": "topic", "split_column": "part", "id_column": "key"}])
def test_labels_splits_and_ids_are_never_features(tmp_path, names):
    nodes = mixed()
    for setting, name in names.items():
        nodes[name] = nodes[setting.removesuffix("_column")]
    assert not [
        name
        for name in load(write(tmp_path, nodes), **names).feature_names
        if name.split("=")[0] in ("id", "label", "split", *names.values())
    ]


def test_what_was_learned_comes_back_from_its_file_bit_for_bit(tmp_path):
    fitted = load(write(tmp_path, mixed()), text="about", text_channels=2).table_features
    fitted.save(tmp_path / "columns.safetensors")
    again = TableFeatures.load(tmp_path / "columns.safetensors")
    assert again.tables["nodes"].columns == fitted.tables["nodes"].columns
    assert again.computes_same(fitted)
    same, other = (load(tmp_path, table_features=one) for one in (fitted, again))
    assert np.array_equal(same.x, other.x)


@pytest.mark.parametrize(
    "plan",
    [
        {},
        {"tables": 3},
        {"tables": {"nodes": [{"name": "a"}]}},
        {"tables": {"nodes": [{"name": "a", "kind": "picture"}]}},
        {"tables": {"nodes": [{"name": "a", "kind": "number", "fill": "much"}]}},
        {"tables": {"nodes": [{"name": "a", "kind": "text"}]}},
    ],
)
def test_a_file_of_columns_that_is_damaged_is_named(tmp_path, plan):
    from safetensors.numpy import save_file

    path = tmp_path / "columns.safetensors"
    content = np.frombuffer(json.dumps(plan).encode(), np.uint8) if plan else np.zeros(3, np.uint8)
    save_file({"columns": content}, path)
    with pytest.raises(InputError, match="does not hold the features of tables") as error:
        TableFeatures.load(path)
    assert "\n" not in str(error.value)


NUMBERS = st.none() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=True, allow_infinity=False, width=32)
DATES = st.none() | st.dates(date(1800, 1, 1), date(2200, 1, 1))


@settings(deadline=None, max_examples=60)
@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_numbers_are_the_same_however_they_are_written(cells):
    numbers = [None if cell is None or math.isnan(cell) else float(cell) for cell in cells]
    written = ["" if cell is None else repr(cell) for cell in numbers]
    one, two = (
        parse_numbers(pa.chunked_array([pa.array(c, t)])) for c, t in ((numbers, pa.float64()), (written, None))
    )
    assert np.array_equal(one.values, two.values, equal_nan=True)
    assert len(two.bad) == 0


@settings(deadline=None, max_examples=60)
@given(st.lists(DATES, min_size=1, max_size=20))
def test_dates_are_the_same_however_they_are_written(cells):
    days = [math.nan if cell is None else float((cell - date(1970, 1, 1)) / timedelta(days=1)) for cell in cells]
    text = pa.array(["" if cell is None else cell.isoformat() for cell in cells])
    stamps = pa.array(cells, pa.date32()).cast(pa.timestamp("us"))
    for array in (pa.array(cells, pa.date32()), stamps, text):
        assert np.array_equal(parse_dates(pa.chunked_array([array])).values, days, equal_nan=True)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.none() | st.text(max_size=3), min_size=1, max_size=30))
def test_any_column_of_text_is_features_or_named_and_a_row_depends_on_its_cell_alone(cells):
    table = table_of(c=pa.array(cells, pa.string()))
    try:
        column = fit_column(table, "c")
    except InputError:  # a cell that is no number where most are
        assert len(parse_numbers(table.columns["c"]).bad) or len(parse_dates(table.columns["c"]).bad)
        return
    if isinstance(column, Column):
        x = features(column, table)
        assert np.isfinite(x).all() or any("inf" in (cell or "").lower() for cell in cells)
        assert np.array_equal(x[::-1], features(column, table_of(c=pa.array(cells[::-1], pa.string()))))


def test_categories_of_whole_numbers_with_gaps_are_written_as_integers():
    assert as_categories(pa.chunked_array([pa.array([1.0, None, 2.0])])).to_pylist() == ["1", None, "2"]
