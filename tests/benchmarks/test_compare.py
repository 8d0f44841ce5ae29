"""Two checkouts are compared row by row, and a comparison continues from its results."""

import json
from pathlib import Path

import pytest

from benchmarks import compare

CHECKOUT = str(Path(__file__).resolve().parents[2])


def test_a_checkout_is_compared_with_itself_and_continues_from_its_results(tmp_path, capsys):
    out = tmp_path / "results.json"
    asked = [CHECKOUT, CHECKOUT, "--rows", "step-fp32-sage", "--size", "tiny", "--pairs", "1", "--out", str(out)]
    lines = compare.main(asked)
    assert "load" in capsys.readouterr().err
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "step fp32 sage vanilla, ms",
        "step fp32 sage enhanced, ms",
        "HeteroConv over step fp32 sage",
    ]
    assert set(json.loads(out.read_text())) == {"step-fp32-sage 0 old", "step-fp32-sage 0 new"}
    assert compare.main(asked) == lines, "nothing is measured again"
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "old", "new", "is_met"),
    [
        ("step bf16 gat enhanced, ms", 100, 114, True),
        ("step bf16 gat enhanced, ms", 100, 116, False),
        ("HeteroConv over step fp32 gat", 7, 6.1, True),
        ("HeteroConv over step fp32 gat", 7, 5.9, False),
        ("auto cora, candidates", 10, 7, True),
        ("auto cora, candidates", 10, 6, False),
        ("train digits, first start, s", 7, 8.9, True),
        ("busy-digits over alone", 5, 3.1, False),
    ],
)
def test_a_limit_is_a_ratio_to_the_old_figure_or_absolute(row, old, new, is_met):
    assert compare.LIMITS[row].is_met(old, new) == is_met


def test_a_table_has_the_median_of_the_pairs():
    results = {
        f"debian-hetero {pair} {side}": {"debian-hetero epoch, s": seconds}
        for side, times in (("old", (1, 2, 9)), ("new", (5, 2.1, 1)))
        for pair, seconds in enumerate(times)
    }
    assert compare.table(results, 3, ["debian-hetero"])[2:] == [
        "| debian-hetero epoch, s | 2 | 2.1 | 1.050 | ≤ 1.1× old | ok |"
    ]
