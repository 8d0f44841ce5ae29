"""docs/architecture.md says in which line each equation of the paper is computed, and it is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| (?P<equation>[^|]+) \| `(?P<file>[\w/]+\.py):(?P<line>\d+)` \| `(?P<code>[^|]+)` \| \d \|$")


def test_every_equation_is_in_the_line_the_page_names():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("<!-- equations -->")[1].split("<!-- end of equations -->")[0].strip().splitlines()[2:]
    assert len(table) >= 10
    for row in table:
        found = ROW.match(row)
        assert found is not None, row
        lines = (ROOT / "src" / "legnn" / found["file"]).read_text(encoding="utf-8").splitlines()
        assert found["code"] in lines[int(found["line"]) - 1], row
