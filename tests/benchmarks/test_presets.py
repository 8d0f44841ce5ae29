"""The benchmark of the presets measures what `legnn train --preset` would train."""

import json

from benchmarks import presets


def test_every_preset_is_measured_and_written(tmp_path):
    place = tmp_path / "rows.json"
    rows = presets.main(["--size", "tiny", "--device", "cpu", "--epochs", "3", "--json", str(place)])
    assert [(row["preset"], row["backbone"], row["as_train"]) for row in rows] == list(presets.CASES)
    assert all(row["epoch_s"] > 0 and row["all_s"] == row["epochs"] * row["epoch_s"] for row in rows)
    assert rows[0]["epochs"] == 2000, "the epochs of the whole run are the preset's"
    assert json.loads(place.read_text()) == rows
