"""The accuracy benchmark: rows of methods, trained once."""

import json

import pytest

from benchmarks import accuracy


@pytest.mark.slow
def test_rows_of_a_tuned_method_are_its_best_on_validation_and_are_trained_once(tmp_path):
    file = tmp_path / "accuracy.json"
    words = [
        "--data",
        "digits",
        "--split",
        "few",
        "--methods",
        "tuned-label_propagation,tuned-label_propagation-smooth",
    ]
    words += ["--seeds", "1", "--jobs", "1", "--json", str(file)]
    accuracy.main(words)
    plain, smooth = json.loads(file.read_text())
    assert {"data": "digits", "split": "few", "method": "tuned-label_propagation", "seed": 0}.items() <= plain.items()
    runs = sorted((tmp_path / "accuracy.json.runs").rglob("*.json"))
    found = [json.loads(path.read_text()) for path in runs]
    assert len(found) == 4
    assert plain["val"] == max(one["val"] for one in found)
    assert plain["test"] in [one["test"] for one in found if one["val"] == plain["val"]]
    assert smooth["val"] >= plain["val"]
    times = [path.stat().st_mtime_ns for path in runs]
    accuracy.main(words)
    assert [path.stat().st_mtime_ns for path in runs] == times


def test_a_method_that_is_none_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        accuracy.main(["--data", "digits", "--methods", "tuned-gnc", "--json", str(tmp_path / "x.json")])
    assert "there is no method 'tuned-gnc'" in capsys.readouterr().err
