"""The picture of an ensemble."""

import pytest
from tests.analysis.images import holds_color
from tests.graphs import small_data

import legnn
from legnn.analysis import draw_ensemble
from legnn.analysis.ensemble_picture import OTHERS, read_leaderboard
from legnn.analysis.pictures import FIRST, SECOND
from legnn.errors import InputError

HEADER = "name,postprocess,val,test,seconds,parameters,weight,state\n"


@pytest.fixture
def ensemble(tmp_path):
    legnn.train_seeds(small_data(), seeds=2, out=tmp_path / "seeds", epochs=2, hidden=8)
    return legnn.open_run(tmp_path / "seeds")


def test_weights_and_accuracies_are_drawn_without_a_leaderboard(ensemble, tmp_path):
    draw_ensemble(ensemble, tmp_path / "p.png")
    assert holds_color(tmp_path / "p.png", FIRST)
    assert holds_color(tmp_path / "p.png", SECOND)
    assert not holds_color(tmp_path / "p.png", OTHERS)


def test_the_leaderboard_marks_members(ensemble, tmp_path):
    rows = "gcn,none,0.8,0.7,1.0,10,0.6,finished\nmlp,correct_and_smooth,0.7,0.6,1.0,10,0,finished\n"
    (ensemble.folder / "leaderboard.csv").write_text(HEADER + rows)
    draw_ensemble(ensemble, tmp_path / "p.png")
    assert holds_color(tmp_path / "p.png", OTHERS)


def test_candidates_without_an_accuracy_are_left_out(tmp_path):
    path = tmp_path / "leaderboard.csv"
    path.write_text(HEADER + "a,none,0.8,0.7,1,10,1.0,finished\nb,none,,,1,,,failed\n")
    board = read_leaderboard(path)
    assert board["name"].tolist() == ["a"]
    assert read_leaderboard(tmp_path / "none.csv") is None


def test_a_damaged_leaderboard_is_one_sentence(tmp_path):
    (tmp_path / "leaderboard.csv").write_text("name,score\na,1\n")
    with pytest.raises(InputError, match=r"leaderboard\.csv is damaged .*remove it to draw the members alone"):
        read_leaderboard(tmp_path / "leaderboard.csv")
