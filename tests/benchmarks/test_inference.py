"""The benchmark of layer-wise inference, and what it says of memory: the plan holds."""

import re

import pytest
from benchmarks.inference import main

SMALL = ["--scale", "0.00001", "--hidden", "8", "--layers", "2"]


def test_it_writes_a_graph_predicts_it_twice_and_compares(tmp_path, capsys):
    main([*SMALL, "--folder", str(tmp_path), "--memory", "8"])
    written, *table, last = capsys.readouterr().out.splitlines()
    assert written.startswith("1,111 nodes, a folder of ")
    assert [line.split(" | ")[0] for line in table[2:]] == ["| host", "| disk"]
    assert last == "disk: the same classes and confidences as host, to the bit"
    assert list(tmp_path.iterdir()) == []


def test_more_memory_than_allowed_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match=r"host: more than 0.001 GB of anonymous memory"):
        main([*SMALL, "--folder", str(tmp_path), "--places", "host", "--memory", "0.001"])


@pytest.mark.slow
def test_anonymous_memory_is_what_was_planned(tmp_path, capsys):
    """States in the host's memory are in it, and states on disk are not."""
    main(["--scale", "0.003", "--edges", "3", "--hidden", "64", "--layers", "2", "--folder", str(tmp_path)])
    rows = {}
    for line in capsys.readouterr().out.splitlines():
        if re.match(r"\| (host|disk)", line):
            place, *figures = line.strip("| ").split(" | ")
            _, _, _, memory, before, planned, disk, _ = map(float, figures)
            rows[place] = (memory - before, planned, disk)
    for grown, planned, _ in rows.values():
        # what is planned is the most: not all of it is there at one time
        assert 0.5 * planned < grown < 1.1 * planned
    states = 2 * 333_180 * 64 * 4 / 1e9
    assert rows["host"][1] - rows["disk"][1] == pytest.approx(states, abs=0.02)
    assert rows["host"][0] - rows["disk"][0] > 0.6 * states
    assert rows["disk"][2] > 0.9 * states
