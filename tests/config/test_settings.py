"""Settings: their names, their file, and the two types."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.named import named

import legnn
from legnn.config import GraphFacts, ResolvedSettings, Settings, collect
from legnn.config.settings import SECTIONS, SETTINGS, VERSION
from legnn.errors import InputError

FACTS = GraphFacts(num_train=15, num_classes=3, counts_features=False, has_label_edges=False)


def written(tmp_path, text: str):
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


overrides = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from(["recommended", "paper", "published"]),
        "backbone": st.sampled_from(["gcn", "sage", "gat", "gatv2", "transformer", "gin"]),
        "labels": st.sampled_from(["vanilla", "concat", "addition", "enhanced"]),
        "hidden": st.none() | st.integers(1, 512),
        "dropout": st.none() | st.floats(0, 0.99),
        "lr": st.none() | st.floats(1e-8, 1),
        "alpha": st.none() | st.floats(0.01, 1),
        "residual": st.none() | st.sampled_from(["none", "identity", "linear"]),
        "selection": st.booleans(),
        "precision": st.sampled_from(["auto", "fp32", "tf32", "bf16", "fp64"]),
        "batch": st.sampled_from(["auto", "full"]) | st.integers(1, 99),
        "split": st.just("default") | st.integers(0, 9),
        "seed": st.integers(0, 2**31),
        "source": st.text(min_size=1, max_size=10).filter(lambda text: text.isprintable()),
    },
)
as_train = (
    st.just({})
    | st.just({"as_train": False})
    | st.fixed_dictionaries(
        {"as_train": st.just(True)}, optional={"pseudo_label_threshold": st.floats(0.01, 0.99), "use_tc": st.booleans()}
    )
)


@given(values=overrides, more=as_train)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(tmp_path, values, more):
    before = Settings().override(named(**values, **more)).resolve(FACTS)
    path = written(tmp_path, before.to_yaml())
    assert ResolvedSettings.from_yaml(path) == before
    assert Settings.from_yaml(path).resolve(FACTS) == before, "nothing is left for the preset to choose"


@pytest.mark.parametrize(
    "source", ["yes", "1e3", "0", "#", "a: b", "- a", "é 'x' \"y\"", " two\nlines ", "words " * 40, "'\n\n" * 40]
)
def test_texts_of_any_kind_are_read_back(tmp_path, source):
    before = Settings().override(named(source=source, seed=1)).resolve(FACTS)
    assert ResolvedSettings.from_yaml(written(tmp_path, before.to_yaml())) == before


def test_settings_are_written_as_yaml_writes_them():
    before = Settings().override(named(seed=1, dropout=0.0, lr=1.0, as_train=True)).resolve(FACTS)
    nested = yaml.safe_load(before.to_yaml())
    assert nested["model"]["appnp"] == {"hops": 10, "teleport": 0.1}
    assert before.to_yaml() == yaml.safe_dump(nested, sort_keys=False, allow_unicode=True)


@pytest.mark.parametrize("first", [{}, {"as_train": True, "pseudo_label_threshold": 0.9, "delta": 3.0}])
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"seed": 3},
        {"epochs": 7, "hidden": 9, "self_loops": False},
        {"as_train": False},
        {"as_train": True, "pseudo_label_threshold": 0.4, "seed": 2},
    ],
)
def test_resolved_settings_that_are_overridden_are_those_that_would_be_resolved(first, values):
    resolved = Settings().override(named(**first)).resolve(FACTS)
    expected = Settings(values={**resolved.flat(), **named(**values)})
    assert resolved.override(named(**values)) == expected.resolve(FACTS)


def test_an_empty_file_means_the_defaults(tmp_path):
    assert Settings.from_yaml(written(tmp_path, "")) == Settings()
    assert Settings.from_yaml(written(tmp_path, "model:\n  backbone: gat\ntrain:\n")).values == {
        "model.backbone": "gat"
    }
    assert Settings.from_yaml(written(tmp_path, "preset: paper")) == Settings(preset="paper")


def test_null_leaves_a_setting_open(tmp_path):
    assert Settings.from_yaml(written(tmp_path, "train: {epochs: null, seed: 3}")).values == {"train.seed": 3}
    assert Settings().override(named(epochs=7, split=1)).override(named(epochs=None, split=None)) == Settings()


@pytest.mark.parametrize("text", ["1e-3", "1.0e-3", "0.001", "'0.001'"])
def test_a_number_may_be_written_as_people_write_it(tmp_path, text):
    assert Settings.from_yaml(written(tmp_path, f"train: {{lr: {text}}}")).values == {"train.lr": 0.001}


def test_a_whole_number_will_do_for_a_fraction(tmp_path):
    weight_decay = Settings.from_yaml(written(tmp_path, "train: {weight_decay: 0}")).values["train.weight_decay"]
    assert weight_decay == 0.0
    assert type(weight_decay) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "model: {bakbone: gcn}",
            r"no setting 'model\.bakbone' \(did you mean 'model\.backbone'\?\); `legnn settings` lists all",
        ),
        (
            "modle: {norm: batch}",
            r"no setting 'modle\.norm' \(did you mean 'model\.norm'\?\)",
        ),
        ("train: {heads: 4}", r"no setting 'train\.heads'"),
        ("heads: 4", r"no setting 'heads' \(did you mean 'model\.attention\.heads'\?\)"),
        ("7: 8", "no setting '7'"),
        (
            "preset: papr",
            r"preset must be one of recommended, simple, paper, published, .*, got 'papr' \(did you mean 'paper'\?\)",
        ),
        ("preset: [paper]", r"preset must be one of recommended, simple, paper, published, .*, got \['paper'\]"),
        ("train: {epochs: many}", "train.epochs must be a whole number, got 'many'"),
        ("train: {epochs: 1.5}", "train.epochs must be a whole number, got 1.5"),
        ("train: {epochs: true}", "train.epochs must be a whole number, got True"),
        ("train: {epochs: '5'}", "train.epochs must be a whole number, got '5'"),
        ("train: {selection: 1}", "train.selection must be true or false, got 1"),
        ("train: {lr: fast}", "train.lr must be a number, got 'fast'"),
        (
            "train: {batch: ful}",
            r"train.batch must be a whole number or auto or full, got 'ful' \(did you mean 'full'\?\)",
        ),
        ("train: {batch: 0}", "train.batch must be at least 1 or auto or full, got 0"),
        ("data: {split: -1}", "data.split must be at least 0 or default, got -1"),
        ("data: {id_column: ''}", "data.id_column must be the name of a column, got ''"),
        ("data: {source: 3}", "data.source must be a data set's name or a folder of tables, got 3"),
        ("data: {text: label}", r"data\.label_column and data\.text are both 'label'; they must be different columns"),
        ("model: {backbone: [gcn]}", r"model.backbone must be one of gcn, .*, got \['gcn'\]"),
        ("model: {backbone: gcnn}", r"backbone must be one of gcn, .*, got 'gcnn' \(did you mean 'gcn'\?\)"),
        ("model: {feature_scale: rows}", "feature_scale must be one of none, row, entries, standard, got 'rows'"),
        ("train: {precision: fp16}", "precision must be one of auto, fp32, tf32, bf16, fp64, got 'fp16'"),
        ("train: {fanout: '3;2'}", "fanout must be numbers from 1 up, or all, such as 15,10,5, got '3;2'"),
        ("train: {lr: -1}", "lr must be above 0, got -1"),
        ("train: {lr: .nan}", "lr must be a finite number above 0, got nan"),
        ("train: {alpha: 1.5}", "alpha must be above 0 and at most 1, got 1.5"),
        (
            "self_training: {as_train: true, pseudo_label_threshold: 1}",
            "pseudo_label_threshold must be above 0 and below 1, got 1",
        ),
        ("model: 3", "no setting 'model'"),
        ("model: {appnp: 3}", r"no setting 'model\.appnp'"),
        ("- a\n- b", "the file must be a mapping of settings"),
        ("model: {", "is not YAML: "),
        ("!!python/object/apply:os.system ['touch hacked']", "is not YAML: "),
    ],
)
def test_a_mistake_in_the_file_is_named_in_one_line(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        Settings.from_yaml(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "hacked").exists(), "a settings file is never executed"


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the settings file .*nowhere\.yaml"):
        Settings.from_yaml(tmp_path / "nowhere.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InputError, match=r"cannot read the settings file .*binary\.yaml"):
        Settings.from_yaml(tmp_path / "binary.yaml")


@pytest.mark.parametrize("missing", ["train.lr", "model.backbone", "model.appnp.teleport", "self_training.delta"])
@pytest.mark.parametrize("is_null", [True, False])
def test_the_file_of_a_run_must_be_complete(tmp_path, missing, is_null):
    content = yaml.safe_load(Settings().override(named(as_train=True)).resolve(FACTS).to_yaml())
    *sections, name = missing.split(".")
    section = content
    for part in sections:
        section = section[part]
    if is_null:
        section[name] = None
    else:
        del section[name]
    with pytest.raises(InputError, match=rf"settings\.yaml: {missing} is missing; the settings of a run must be"):
        ResolvedSettings.from_yaml(written(tmp_path, yaml.safe_dump(content)))


def test_a_file_cut_at_any_line_end_is_refused(tmp_path):
    lines = Settings().resolve(FACTS).to_yaml().splitlines(keepends=True)
    for number in range(len(lines)):
        with pytest.raises(InputError):
            ResolvedSettings.from_yaml(written(tmp_path, "".join(lines[:number])))


def test_a_file_without_a_version_is_refused_in_one_sentence(tmp_path):
    text = Settings().resolve(FACTS).to_yaml().removeprefix(f"version: {VERSION}\n")
    with pytest.raises(InputError, match=r"settings\.yaml was written by an older legnn, whose runs cannot be read"):
        ResolvedSettings.from_yaml(written(tmp_path, text))


@pytest.mark.parametrize("version", ["0", str(VERSION + 1), "true", "one", "[1]"])
def test_a_version_that_is_not_known_is_refused(tmp_path, version):
    text = Settings().resolve(FACTS).to_yaml().replace(f"version: {VERSION}", f"version: {version}")
    with pytest.raises(InputError, match=f"version must be a number from 1 to {VERSION}"):
        ResolvedSettings.from_yaml(written(tmp_path, text))


LATER = """
from pathlib import Path
from legnn.config import ResolvedSettings

path = Path("settings.yaml")
resolved = ResolvedSettings.from_yaml(path)
assert resolved.train.momentum == 0.5
assert resolved.digest == path.with_name("digest").read_text()
assert resolved.override({"train.momentum": 0.9}).digest != resolved.digest
text = resolved.to_yaml()
assert text.startswith(f"version: {SINCE}")
path.write_text("".join(line for line in text.splitlines(keepends=True) if "momentum" not in line))
try:
    ResolvedSettings.from_yaml(path)
except ValueError as error:
    assert "train.momentum is missing" in str(error), error
else:
    raise AssertionError("a file of the new version must have it")
"""


def test_a_setting_that_was_added_later_may_be_missing_in_files_of_earlier_versions_alone(tmp_path):
    resolved = Settings().resolve(FACTS)
    written(tmp_path, resolved.to_yaml())
    (tmp_path / "digest").write_text(resolved.digest)
    package = Path(shutil.copytree(Path(legnn.__file__).parent, tmp_path / "next" / "legnn"))
    file, field = package / "config" / "training.py", "    batch: int"
    added = f'    momentum: float = setting(0.5, "Momentum", since={VERSION + 1})\n'
    assert field in file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace(field, added + field), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "next")}
    command = [sys.executable, "-c", f"SINCE = {VERSION + 1}\n{LATER}"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_value_changes_the_digest():
    resolved = Settings().resolve(FACTS)
    for name in SETTINGS:
        for value in ("label", 2, True, False, 1, 0.5, *SETTINGS[name].choices):
            try:
                changed = resolved.override({name: value})
            except InputError:
                continue
            assert (changed.digest == resolved.digest) == (changed == resolved), name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# " + "x" * 70_000, r"settings\.yaml has more than 64 kB"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(30)) + " " * 30 + "a: 1", "has more than 20 levels"),
        ("train: " + "[" * 60_000, "has more than 20 levels"),
    ],
)
def test_a_large_or_deep_file_is_refused_before_it_is_parsed(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        Settings.from_yaml(written(tmp_path, text))


def test_settings_are_replaced_by_name():
    changed = Settings().override(
        named(backbone="gat", epochs=7, undirected=False, as_train=True, pseudo_label_threshold=0.9)
    )
    assert changed.data.undirected is False
    resolved = changed.resolve(FACTS)
    assert (resolved.model.backbone, resolved.train.epochs, resolved.data.undirected) == ("gat", 7, False)
    assert (resolved.self_training.as_train, resolved.self_training.pseudo_label_threshold) == (True, 0.9)
    again = resolved.override(named(seed=3, pseudo_label_threshold=0.8))
    assert (again.train.seed, again.self_training.pseudo_label_threshold, again.train.epochs) == (3, 0.8, 7)
    assert (resolved.train.seed, Settings()) == (0, Settings()), "nothing is changed in place"


@pytest.mark.parametrize("start", [Settings(), Settings().resolve(FACTS)])
def test_a_name_of_no_setting_is_answered_with_a_close_one(start):
    with pytest.raises(InputError, match=r"no setting 'train\.epoch' \(did you mean 'train\.epochs'\?\)"):
        start.override({"train.epoch": 3})
    with pytest.raises(
        InputError, match=r"no setting 'alpha' \(did you mean 'model\.label_propagation\.alpha' or 'train"
    ):
        start.override({"alpha": 0.3})


def test_a_setting_of_as_train_needs_as_train():
    values = {"self_training.delta": 3.0}
    with pytest.raises(InputError, match=r"self_training\.delta belongs to AS-Train, which is off") as caught:
        collect(values)
    assert caught.value.setting == "self_training.as_train"
    assert collect(values, {"as_train": True}).values["self_training.delta"] == 3.0


def test_keywords_win_over_settings_and_none_leaves_them():
    settings = {"model.hidden": 8, "train.lr": 0.5, "preset": "simple"}
    collected = collect(settings, {"hidden": 9, "lr": None}, preset="paper")
    assert (dict(collected.values), collected.preset) == ({"model.hidden": 9, "train.lr": 0.5}, "paper")
    assert collect(settings).preset == "simple"
    with pytest.raises(InputError, match="settings must be a mapping from dotted names to values, got 3"):
        collect(3)


@pytest.mark.parametrize(("name", "value"), [("hidden", 0), ("hidden", "8"), ("dropout", 1.0), ("labels", "one")])
def test_a_value_is_checked_wherever_it_is_given(name, value):
    for make in (Settings().override, Settings().resolve(FACTS).override):
        with pytest.raises(InputError, match=f"^model.{name} must be") as caught:
            make({f"model.{name}": value})
        assert caught.value.setting == f"model.{name}"
    with pytest.raises(InputError, match=f"^model.{name} must be"):
        SECTIONS["model"](**{name: value})


def test_a_number_of_numpy_is_a_number():
    values = Settings().override(named(hidden=np.int64(8), lr=np.float32(0.5))).values
    assert values == {"model.hidden": 8, "train.lr": 0.5}
    assert (type(values["model.hidden"]), type(values["train.lr"])) == (int, float)


def test_the_file_holds_every_setting():
    resolved = Settings().resolve(FACTS)
    assert list(resolved.flat()) == list(SETTINGS)
    assert list(yaml.safe_load(resolved.to_yaml())) == ["version", "preset", *SECTIONS]


@pytest.mark.parametrize(
    "text",
    [
        "train: {seed: 2020-13-45}",
        "train: {seed: 2020-01-01}",
        "train: {seed: " + "9" * 5000 + "}",
        "train: {seed: " + "9" * 30 + "}",
        "train: {lr: " + "9" * 400 + "}",
        "train: {lr: .inf}",
        "train: {lr: 1e999}",
        "train: {epochs: 1:99:99}",
        "train: " + "[" * 1000,
        "model: {hidden: " + "{a: " * 3000,
        "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nmodel: [*b, *b, *b]",
        "train: {fanout: '" + "9" * 30 + "'}",
        'data: {source: "a\\0b"}',
        "? [a, b]\n: c",
        "preset: [a]",
    ],
)
def test_values_that_no_setting_can_have_are_named_in_one_short_line(text, tmp_path):
    with pytest.raises(InputError) as caught:
        Settings.from_yaml(written(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
