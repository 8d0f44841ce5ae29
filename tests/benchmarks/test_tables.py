"""The benchmark of edge tables, from the first line it prints to the last."""

import pytest
from benchmarks.tables import main


@pytest.mark.parametrize("options", [[], ["--format", "csv", "--weighted", "--scattered"]])
def test_it_writes_reads_and_reports(options, tmp_path, capsys):
    main(["--edges", "1000", "--nodes", "50", "--folder", str(tmp_path), *options])
    written, seconds, memory = capsys.readouterr().out.splitlines()
    assert written.startswith("1,000 edges, 50 nodes, ")
    assert seconds.startswith("read in ")
    assert memory.endswith(" times the arrays")
    assert list(tmp_path.iterdir()) == []
