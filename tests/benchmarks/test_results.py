"""The benchmark of results runs its rows, keeps them, and prints a table of them."""

import json

from benchmarks import results


def test_a_row_is_run_kept_and_printed():
    (row,) = results.rows(["digits"], ["gcn"], ["LEGNN"], ["auto"], ["full"], seeds=2)
    row["options"] |= {"epochs": 2, "hidden": 8}
    done = json.loads(json.dumps(results.run(row)))
    assert done["summary"]["seeds"] == [0, 1]
    text = results.table([done])
    assert f"{done['summary']['test']['accuracy']['mean']:.4f} ± " in text
    assert "legnn train digits --backbone gcn --labels enhanced --epochs 2 --hidden 8 --seeds 2" in text
