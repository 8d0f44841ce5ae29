"""The benchmarks of large graphs run, and their rows say what was asked."""

import json

from benchmarks import epochs, sampling


def test_epochs_are_measured_for_every_scale_and_backbone(tmp_path):
    asked = ["--size", "tiny", "--scales", "0.5", "1", "--backbones", "gcn", "gat", "--batch", "32"]
    rows = epochs.main([*asked, "--json", str(tmp_path / "rows.json"), "--plot", str(tmp_path / "plot.png")])
    assert [(row["nodes"], row["backbone"]) for row in rows] == [(150, "gcn"), (150, "gat"), (300, "gcn"), (300, "gat")]
    for row in rows:
        assert row["epoch_s"] > 0
        assert row["validation_s"] > 0
        assert row["drawn_edges"] / row["sampling_s"] > 0
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    assert (tmp_path / "plot.png").stat().st_size > 1000
    again = epochs.main(["--from-json", str(tmp_path / "rows.json"), "--backbones", "gat"])
    assert again == [row for row in rows if row["backbone"] == "gat"]


def test_sampling_counts_what_it_draws():
    (row,) = sampling.main(["--size", "tiny", "--batch", "16", "--fanout", "3,2", "--repeats", "2"])
    assert row["batch"] == 16
    assert 16 < row["drawn_edges"] <= 16 * 2 + 16 * 3 * 3 + 5 * 3 * 2
    assert row["drawn_nodes"] >= 16
