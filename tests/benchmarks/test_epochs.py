"""The benchmark of epochs runs, and its rows say what was asked."""

import json

from benchmarks import epochs


def test_epochs_are_measured_for_every_scale_and_backbone(tmp_path):
    asked = ["--size", "tiny", "--scales", "0.5", "1", "--backbones", "gcn", "gat", "--batch", "32"]
    rows = epochs.main([*asked, "--json", str(tmp_path / "rows.json"), "--plot", str(tmp_path / "plot.png")])
    assert [(row["nodes"], row["backbone"]) for row in rows] == [(150, "gcn"), (150, "gat"), (300, "gcn"), (300, "gat")]
    for row in rows:
        assert row["epoch_s"] > 0
        assert row["validation_s"] > 0
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    assert (tmp_path / "plot.png").stat().st_size > 1000
    again = epochs.main(["--from-json", str(tmp_path / "rows.json"), "--backbones", "gat"])
    assert again == [row for row in rows if row["backbone"] == "gat"]
