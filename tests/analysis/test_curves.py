"""The picture of a run."""

import pytest
from tests.graphs import small_data
from tests.named import named

import legnn
from legnn.analysis import draw_curves
from legnn.analysis.curves import series
from legnn.errors import InputError
from legnn.runs import RunFolder

STARTS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    legnn.train(small_data(), out=place / "plain", epochs=3, hidden=8)
    legnn.train(
        small_data(),
        settings=named(epochs=3, hidden=8, as_train=True, pseudo_label_threshold=0.3),
        out=place / "as-train",
    )
    return place


@pytest.mark.parametrize("suffix", STARTS)
@pytest.mark.parametrize("name", ["plain", "as-train"])
def test_a_run_is_drawn_into_a_file_of_the_kind_asked_for(runs, tmp_path, name, suffix):
    place = tmp_path / "new" / f"curves{suffix}"
    draw_curves(RunFolder.open(runs / name), place)
    assert place.read_bytes().startswith(STARTS[suffix])
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_a_run_that_is_not_finished_can_be_drawn(tmp_path):
    with pytest.raises(legnn.Interrupted):
        legnn.train(small_data(), out=tmp_path / "cut", epochs=3, hidden=8, should_stop=lambda: True)
    draw_curves(RunFolder.open(tmp_path / "cut"), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_a_run_without_epochs_has_nothing_to_draw(runs, tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("settings.yaml", "data.json"):
        (tmp_path / "run" / name).write_bytes((runs / "plain" / name).read_bytes())
    with pytest.raises(InputError, match="has no epochs to draw yet"):
        draw_curves(RunFolder.open(tmp_path / "run"), tmp_path / "curves.png")


def test_another_kind_of_file_is_refused(runs, tmp_path):
    with pytest.raises(InputError, match=r"a \.png, \.svg or \.pdf file, not to .*curves\.doc"):
        draw_curves(RunFolder.open(runs / "plain"), tmp_path / "curves.doc")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "name"),
    [({"backbone": "gat", "as_train": True}, "gat, enhanced, AS-Train"), ({"architecture": "pyg_gcn"}, "pyg_gcn")],
)
def test_the_title_names_the_model(tmp_path, options, name):
    legnn.train(small_data(), settings=named(**options, epochs=1, hidden=8), out=tmp_path / "run")
    draw_curves(RunFolder.open(tmp_path / "run"), tmp_path / "curves.svg")
    assert f"small: {name} (test accuracy 0." in (tmp_path / "curves.svg").read_text()


def test_epochs_without_a_value_are_left_out():
    logs = [{"epoch": 1, "a": None}, {"epoch": 2, "a": 0.5}, {"epoch": 3, "a": 0.0}]
    assert series(logs, "a") == ([2, 3], [0.5, 0.0])
