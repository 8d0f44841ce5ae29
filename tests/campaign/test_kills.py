"""Processes killed at any moment come to the end they would have come to; the long form is `benchmarks.campaign`."""

import random

import pytest
from benchmarks.campaign.kills import SHARES, kill_many, shares_of
from benchmarks.campaign.moments import draw
from benchmarks.campaign.outcomes import differences, outcome


@pytest.mark.slow
def test_what_is_killed_while_it_trains_or_prepares_comes_to_the_same_end(tmp_path):
    found = kill_many(5, 0, tmp_path, ("full", "mini", "prepare"))
    assert found.is_good, found.markdown()
    assert sum(one.kills for one in found.found) >= 5
    assert {one.kind for one in found.found} == {"full", "mini", "prepare"}


def test_a_hundred_kills_have_every_kind_of_process():
    assert sum(shares_of(100).values()) == 100
    assert min(shares_of(100).values()) >= 5
    assert shares_of(100).keys() == SHARES.keys()


def test_moments_reach_from_the_start_of_a_run_to_its_end(tmp_path):
    chance = random.Random(0)
    drawn = [draw(chance, tmp_path / "metrics.jsonl", 0, 10) for _ in range(300)]
    assert {one.lines for one in drawn} == set(range(11))
    assert any(one.is_folder for one in drawn)


def test_a_run_that_differs_in_one_bit_or_lacks_a_file_is_found(tmp_path):
    for name, loss, seconds in (("one", 0.5, 1), ("same", 0.5, 2), ("other", 0.25, 1)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "result.json").write_text(f'{{"seconds": {seconds}, "loss": {loss}}}')
        (folder / "weights").write_bytes(b"\x00\x01")
    one, same, other = (outcome(tmp_path / name) for name in ("one", "same", "other"))
    assert differences(one, same) == []
    assert differences(one, other) == ["result.json"]
    (tmp_path / "same" / "weights").write_bytes(b"\x00\x03")
    (tmp_path / "same" / ".result.json.0123abcd.partial").write_bytes(b"")
    assert differences(one, outcome(tmp_path / "same")) == [".result.json.0123abcd.partial", "weights"]
