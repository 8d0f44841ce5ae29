"""Of writers that start into one folder at the same moment one goes on; the long form is `benchmarks.campaign`."""

import pytest
from benchmarks.campaign.races import SHARES, Race, Races, race_many


@pytest.mark.slow
def test_of_writers_into_one_folder_one_goes_on_as_if_alone(tmp_path):
    kinds = ("train + train + train", "resume + resume", "prepare + prepare")
    found = race_many(3, 0, tmp_path, kinds)
    assert found.is_good, found.markdown()
    assert [one.kind for one in found.found] == list(kinds)
    assert all(one.codes.count(0) == 1 for one in found.found)


def test_a_race_that_two_writers_win_is_a_fault_that_is_shown():
    found = Races([Race("train + train", [0, 2]), Race("train + train", [0, 0], "both trained")])
    assert not found.is_good
    assert "| train + train | 2 | 1 |" in found.markdown()
    assert "both trained" in found.markdown()


def test_twenty_races_have_every_kind_of_writer():
    assert sum(SHARES.values()) == 20
