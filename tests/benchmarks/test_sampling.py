"""The sampling benchmark, run through once."""

import json

import pytest
from benchmarks.sampling import main


def test_it_measures_prints_and_writes(tmp_path, capsys):
    file = tmp_path / "rows.json"
    rows = main(["--sizes", "tiny", "--batch", "8", "--fanout", "3,all", "--repeats", "2", "--json", str(file)])
    assert [row["batch"] for row in rows] == [8, 16, 32]
    assert json.loads(file.read_text()) == rows
    for row in rows:
        assert row["drawn_edges"] > row["drawn_nodes"] - row["batch"] > 0
        assert row["edges_per_second"] == pytest.approx(row["drawn_edges"] / row["milliseconds"] * 1e3)
    assert "M edges/s" in capsys.readouterr().out


@pytest.mark.parametrize("fanout", ["0,3", "five", ""])
def test_a_fanout_that_cannot_be_is_refused(fanout, capsys):
    with pytest.raises(SystemExit):
        main(["--size", "tiny", "--fanout", fanout])
    assert "such as 15,10,5" in capsys.readouterr().err
