"""JSON files with a typed form: what is written is read back, and what does not fit is refused in one sentence."""

import json
from dataclasses import dataclass, field, fields

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


@pytest.mark.parametrize(
    "text",
    [
        '{"score": ' + "9" * 400 + "}",
        '{"score": ' + "9" * 5000 + "}",
        '{"score": NaN}',
        '{"score": -Infinity}',
        '{"score": 1e999}',
        '{"score": 1, "count": 1e400}',
        '{"score": ' + "[" * 50_000,
        '{"score": "2020-13-45"}',
        '{"score": true}',
        '{"score": 1, "score2": 1}',
        "\ud800".join(["{", "}"]),
        "",
    ],
)
def test_a_number_or_text_that_no_writer_wrote_is_refused_in_one_sentence(text, tmp_path):
    (tmp_path / "file.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"file\.json is damaged \(.*\); restore it from a copy$") as caught:
        read_json(tmp_path / "file.json", Inner)
    assert len(str(caught.value)) < 500


def cards() -> list[object]:
    from legnn.notes import Note
    from legnn.runs.data_card import DataCard
    from legnn.runs.ensemble import EnsembleCard, Member
    from legnn.runs.result import MeanStd, Result, Summary
    from legnn.runs.seeds import SeedPlan
    from legnn.search.auto import SearchCard
    from legnn.search.budget import TimeUsed
    from legnn.training import EpochLog

    scores, mean = {"accuracy": 0.5, "macro_f1": 0.25}, MeanStd(mean=0.5, std=None)
    about = {"parameters": 3, "versions": {"python": "3"}, "notes": [Note("a", "b")]}
    card = DataCard(
        name="a", fingerprint="f", nodes=4, edges=3, features=2, classes=["x", 1], feature_names=["a", "b"],
        label_edges=[(0, 1, 0.5)], types=["p", "q"], target_type="p", type_columns=[["a"], ["b"]],
        computed_features=[], relations=[(0, 1)], notes=[],
    )  # fmt: skip
    member = Member(folder="runs/a", weight=1.0, propagation_steps=3, propagation_alpha=0.5)
    return [
        SearchCard(source="a", fingerprint="f", seed=0, space="wide", sampler="tpe", budget="9s",
                   trials=None, single=False, only=["a"], values={"train.epochs": 3}),
        TimeUsed(3.5),
        EnsembleCard(members=[member], temperature=1.0),
        card,
        SeedPlan(seeds=[0, 1], preset="simple", values={"train.epochs": 3}),
        Result(
            val=scores, test=None, train_masked=scores, best_epoch=1, epochs=2, seconds=0.5, seed=0,
            device="cpu", precision="fp32", **about,
        ),
        Summary(
            val={"accuracy": mean}, test=None, train_masked=None, seeds=[0],
            seconds=1.0, **about,
        ),
        EpochLog(**{one.name: 1 for one in fields(EpochLog)} | {"val": scores}),
    ]  # fmt: skip


WRONG = [None, True, -1, 1.5, 10**400, "word", [], {}, [[]], {"a": 1}]


def places(value: object, place: tuple = ()):
    """Every place in a JSON value but the whole."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*place, key)
        yield from places(child, (*place, key))


@pytest.mark.parametrize("card", cards(), ids=lambda card: type(card).__name__)
def test_no_wrong_value_of_any_file_gives_a_traceback(card, tmp_path):
    path = tmp_path / "file.json"
    write_json(path, card)
    assert read_json(path, type(card)) == card
    whole = json.loads(path.read_text())
    refused = 0
    for place in [*places(whole)]:
        for value in WRONG:
            wrong = json.loads(json.dumps(whole))
            at = wrong
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = value
            path.write_text(json.dumps(wrong))
            try:
                found = read_json(path, type(card))
            except InputError:
                refused += 1
            else:
                assert type(found) is type(card)
    assert refused > 5 * len([*places(whole)])


@pytest.mark.parametrize("card", cards(), ids=lambda card: type(card).__name__)
def test_no_file_that_was_cut_is_read(card, tmp_path):
    path = tmp_path / "file.json"
    write_json(path, card)
    content = path.read_bytes().rstrip()
    for end in range(len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(InputError, match="is damaged"):
            read_json(path, type(card))
