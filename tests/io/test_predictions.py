"""Predictions go out as a table that joins with the user's own."""

import numpy as np
import pandas as pd
import pytest

from legnn.errors import InputError
from legnn.io import read_predictions, write_predictions


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
