"""docs/architecture.md tells the truth: every module is in its room's row, and each equation in the line it names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "legnn"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.split("## The way of the data")[0], flags=re.MULTILINE))
EQUATION = re.compile(r"^\| (?P<equation>[^|]+) \| `(?P<file>[\w/]+\.py):(?P<line>\d+)` \| `(?P<code>[^|]+)` \| \d \|$")


def test_every_room_has_a_row():
    assert set(ROOMS) == {path.parent.name for path in SOURCE.glob("*/__init__.py")}


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_of_a_room_is_in_its_row(room):
    modules = {path.stem for path in (SOURCE / room).glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in (SOURCE / room).glob("*/__init__.py")}
    assert modules | folders <= set(re.findall(r"`(\w+)`", ROOMS[room]))


def test_every_equation_is_in_the_line_the_page_names():
    table = PAGE.split("<!-- equations -->")[1].split("<!-- end of equations -->")[0].strip().splitlines()[2:]
    assert len(table) >= 10
    for row in table:
        found = EQUATION.match(row)
        assert found is not None, row
        lines = (SOURCE / found["file"]).read_text(encoding="utf-8").splitlines()
        assert found["code"] in lines[int(found["line"]) - 1], row
