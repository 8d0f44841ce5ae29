"""Atomic files: their errors name them, and what a killed process left is known by its name."""

import subprocess
import sys

from legnn.files import atomic_write, is_partial

FULL = """
import resource, sys
sys.path[:0] = {path!r}
from pathlib import Path
from legnn.files import write_text
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_text(Path(sys.argv[1]) / "result.json", "x" * 5000)
except OSError as error:
    print(error)
"""


def test_where_there_is_no_room_the_file_is_named_and_nothing_is_left(tmp_path):
    command = [sys.executable, "-c", FULL.format(path=sys.path), str(tmp_path)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said.strip().endswith(f"'{tmp_path / 'result.json'}'"), said
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_being_written_is_known_by_its_name(tmp_path):
    with atomic_write(tmp_path / "data.json"):
        (there,) = tmp_path.iterdir()
        assert is_partial(there)
    assert not is_partial(tmp_path / "data.json")
    assert not is_partial(tmp_path / "my.partial")
