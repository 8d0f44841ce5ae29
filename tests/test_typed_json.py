"""JSON files with a typed form: what is written is read back, and what does not fit is refused in one sentence."""

import json
from dataclasses import dataclass, field

import pytest

from legnn.errors import InputError
from legnn.typed_json import read_json, write_json


@dataclass(frozen=True)
class Inner:
    score: float
    count: int | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner | None
    keys: list[str | int | float]
    pairs: list[tuple[int, float]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


FULL = Outer("a", Inner(0.5, 3), ["x", 1, 0.25], [(1, 2.0)], {"python": "3"})


@pytest.mark.parametrize("value", [FULL, Outer("ü", None, [])])
def test_what_is_written_is_read_back(tmp_path, value):
    write_json(tmp_path / "file.json", value)
    assert read_json(tmp_path / "file.json", Outer) == value


def test_a_whole_number_will_do_for_a_fraction(tmp_path):
    (tmp_path / "file.json").write_text('{"score": 1}')
    assert read_json(tmp_path / "file.json", Inner) == Inner(1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": 3}, "name is 3"),
        ({"name": None}, "name is None"),
        ({"inner": [1]}, "inner is"),
        ({"inner": {"score": "high"}}, "score is 'high'"),
        ({"inner": {"score": True}}, "score is True"),
        ({"inner": {}}, "lacks the key 'score'"),
        ({"keys": {"a": 1}}, "keys is"),
        ({"keys": [None]}, "keys is None"),
        ({"pairs": [[1]]}, "pairs is"),
        ({"versions": {"python": 3}}, "versions is 3"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_another_type_or_key_is_named_in_one_sentence(tmp_path, change, words):
    content = {"name": "a", "inner": None, "keys": [], **change}
    (tmp_path / "file.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=words) as caught:
        read_json(tmp_path / "file.json", Outer)
    assert str(tmp_path / "file.json") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"name": "a"}', "[" * 100_000, '{"score": 1' + "0" * 5000 + "}"])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(InputError, match=r"file\.json is damaged"):
        read_json(tmp_path / "file.json", Inner)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.json is damaged"):
        read_json(tmp_path / "nowhere.json", Inner)
