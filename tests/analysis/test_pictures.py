"""Figures and their files."""

import matplotlib
import numpy as np
import pytest
from matplotlib import image

from legnn.analysis.pictures import CLASS_COLORS, new_figure, save_picture
from legnn.errors import InputError


def test_panels_come_row_by_row_in_the_size_asked_for():
    figure, axes = new_figure(2, 3, width=2, height=1.5)
    assert tuple(figure.get_size_inches()) == (6, 3)
    assert [axis.get_subplotspec().num1 for axis in axes] == list(range(6))


def test_what_is_drawn_is_in_the_file(tmp_path):
    figure, axes = new_figure()
    save_picture(figure, tmp_path / "empty.png")
    axes[0].fill_between([0, 1], [1, 1], color=CLASS_COLORS[0])
    save_picture(figure, tmp_path / "full.png")
    empty, full = (image.imread(tmp_path / f"{name}.png")[..., :3] for name in ("empty", "full"))
    color = np.array([int(CLASS_COLORS[0][k : k + 2], 16) / 255 for k in (1, 3, 5)])
    assert np.abs(full - color).max(-1).min() < 0.01
    assert (np.abs(full - color).max(-1) < 0.01).mean() > 0.5
    assert np.abs(empty - color).max(-1).min() > 0.1


def test_the_backend_of_the_caller_stays(tmp_path):
    before = matplotlib.rcParams._get("backend")
    save_picture(new_figure()[0], tmp_path / "a.svg")
    assert matplotlib.rcParams._get("backend") is before


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a \.png, \.svg or \.pdf file, not to .*a\.gif"):
        save_picture(new_figure()[0], tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_ten_classes_have_colors_of_their_own():
    assert len(set(CLASS_COLORS)) == 10
