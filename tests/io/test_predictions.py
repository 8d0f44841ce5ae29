"""Predictions go out as a table that joins with the user's own."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.graphs import small_data

import legnn
from legnn.errors import InputError
from legnn.io import CategoricalColumn, PredictionTable, read_predictions, write_predictions


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize(
    ("ids", "predicted"),
    [
        (np.array([3, 1, 2]), [10, 9, 10]),
        (np.array(["a", "007", 'quo"te,'], dtype=object), ["NA", "x y", "z"]),
    ],
)
def test_predictions_come_back_as_they_went(ids, predicted, suffix, tmp_path):
    path = tmp_path / "deep" / f"predictions{suffix}"
    confidence = np.array([0.5, 0.25, 1.0], dtype=np.float32)
    split = ["train", "test", ""]
    frame = pd.DataFrame({"id": ids, "prediction": predicted, "confidence": confidence, "split": split})
    write_predictions(path, frame)
    table = read_predictions(path)
    assert list(table.columns) == ["id", "prediction", "confidence", "split"]
    assert table["id"].tolist() == ids.tolist()
    assert table["prediction"].tolist() == predicted
    assert table["confidence"].tolist() == confidence.tolist()
    assert table["split"].tolist() == ["train", "test", ""]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_labels_and_probabilities_are_written_beside_predictions(suffix, tmp_path):
    path = tmp_path / f"predictions{suffix}"
    base = {"id": [3, 1], "prediction": ["a", "b"], "confidence": [0.75, 0.5], "split": ["test", ""]}
    frame = pd.DataFrame({**base, "label": pd.Series(["a", None], dtype=object), "p_a": [0.75, 0.5]})
    write_predictions(path, frame)
    written = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path)
    assert written.columns.tolist() == frame.columns.tolist()
    assert written["label"].isna().tolist() == [False, True]
    assert written["p_a"].tolist() == [0.75, 0.5]
    assert read_predictions(path).columns.tolist() == list(base)


def test_predictions_go_to_tables_alone(tmp_path):
    with pytest.raises(InputError, match=r"\.parquet or a \.csv"):
        write_predictions(tmp_path / "predictions.txt", pd.DataFrame())


def test_a_table_that_holds_no_predictions_is_named(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("id,label\n1,2\n")
    with pytest.raises(InputError, match="has no column 'prediction'"):
        read_predictions(path)
    with pytest.raises(InputError, match="could not be read"):
        read_predictions(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2],
        ["a", "ü", ""],
        [None, "a", "b"],
        [1.5, 2.5, 0.0],
        [True, False, True],
        np.arange(6)[::2],
        np.array([0.5, 1, 2], np.float32),
        np.array([1, 2, 3], np.int32),
        np.array(["a", "b", "c"], object),
        np.array(["x", "yy", ""]),
        [],
    ],
    ids=str,
)
def test_columns_that_are_put_together_without_pandas_are_those_of_arrow(values, tmp_path):
    write_predictions(tmp_path / "p.parquet", PredictionTable({"id": values}))
    expected = pa.array(values.tolist() if isinstance(values, np.ndarray) and values.dtype == object else values)
    found = pq.read_table(tmp_path / "p.parquet")["id"].combine_chunks()
    assert found.type == expected.type
    assert found.equals(expected)


@pytest.mark.parametrize("names", [["a", "ü", ""], [7, 8, 9], [0.5, 1.5, 2.5], [True, False, True]], ids=str)
@pytest.mark.parametrize("which", [[2, 0, 0, 1], []], ids=str)
def test_a_column_of_few_values_is_that_of_its_rows(names, which, tmp_path):
    rows, column = [names[k] for k in which], CategoricalColumn(names, np.array(which, dtype=np.int64))
    write_predictions(tmp_path / "p.parquet", PredictionTable({"id": column}))
    found = pq.read_table(tmp_path / "p.parquet")["id"].combine_chunks()
    assert found.equals(pa.array(rows, pa.array(names).type))
    pd.testing.assert_frame_equal(PredictionTable({"id": column}).frame, PredictionTable({"id": rows}).frame)


def test_a_table_has_the_values_of_the_frame_it_was_made_of_and_its_notes_are_those_of_the_frame():
    frame = pd.DataFrame({"id": [1, 2], "prediction": ["a", "b"]})
    frame.attrs["notes"] = ["one"]
    again = PredictionTable.from_frame(frame).frame
    pd.testing.assert_frame_equal(again, frame)
    assert again.attrs == frame.attrs
    copied = PredictionTable({"id": [1, 2], "prediction": ["a", "b"]}, ("one",)).frame
    pd.testing.assert_frame_equal(copied, frame)
    assert copied.attrs == frame.attrs


def test_predictions_of_a_graph_with_notes_are_written_to_parquet_by_pandas(tmp_path):
    data = small_data(train_mask=None, val_mask=None, test_mask=None)
    table = legnn.train(data, settings={"train.epochs": 2, "model.hidden": 8}).predict()
    assert "comes without a split" in table.attrs["notes"][0]
    table.to_parquet(tmp_path / "predictions.parquet")
