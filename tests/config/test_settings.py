"""Settings: their names, their file, and the two types."""

from dataclasses import asdict, fields

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.named import named

from legnn.config import SECTIONS, SETTINGS, GraphFacts, ResolvedSettings, Settings
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
    assert before.to_yaml() == yaml.dump(asdict(before), sort_keys=False, allow_unicode=True)


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
    now = {one.name: getattr(getattr(resolved, one.section), one.name) for one in SETTINGS.values()}
    is_on = values.get("as_train", resolved.self_training.as_train)
    kept = [name for name, one in SETTINGS.items() if one.section != "self_training" or is_on]
    expected = Settings().override(named(**{name: now[name] for name in kept} | {"as_train": is_on} | values))
    assert resolved.override(named(**values)) == expected.resolve(FACTS)


def test_an_empty_file_means_the_defaults(tmp_path):
    assert Settings.from_yaml(written(tmp_path, "")) == Settings()
    assert Settings.from_yaml(written(tmp_path, "model:\n  backbone: gat\ntrain:\n")).given == {"backbone": "gat"}
    assert Settings.from_yaml(written(tmp_path, "preset: paper")) == Settings(preset="paper")


def test_null_leaves_a_setting_open(tmp_path):
    assert Settings.from_yaml(written(tmp_path, "train: {epochs: null, seed: 3}")).given == {"seed": 3}
    assert Settings().override(named(epochs=7, split=1)).override(named(epochs=None, split=None)) == Settings()


@pytest.mark.parametrize("text", ["1e-3", "1.0e-3", "0.001", "'0.001'"])
def test_a_number_may_be_written_as_people_write_it(tmp_path, text):
    assert Settings.from_yaml(written(tmp_path, f"train: {{lr: {text}}}")).given == {"lr": 0.001}


def test_a_whole_number_will_do_for_a_fraction(tmp_path):
    weight_decay = Settings.from_yaml(written(tmp_path, "train: {weight_decay: 0}")).given["weight_decay"]
    assert weight_decay == 0.0
    assert type(weight_decay) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: {bakbone: gcn}", r"unknown key 'model\.bakbone' \(did you mean 'backbone'\?\); known: architecture, "),
        (
            "modle: {}",
            r"unknown key 'modle' \(did you mean 'model'\?\); known: preset, data, model, train, self_training",
        ),
        ("self_training: {treshold: 1}", r"unknown key 'self_training\.treshold' \(did you mean 'threshold'\?\)"),
        ("7: 8", "unknown key '7'"),
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
        ("data: {text: label}", "label_column and text are both 'label'; they must be different columns"),
        ("model: {backbone: [gcn]}", r"model.backbone must be one of gcn, .*, got \['gcn'\]"),
        ("model: {backbone: gcnn}", r"backbone must be one of gcn, .*, got 'gcnn' \(did you mean 'gcn'\?\)"),
        ("model: {scale: rows}", "scale must be one of none, row, entries, standard, got 'rows'"),
        ("train: {precision: fp16}", "precision must be one of auto, fp32, tf32, bf16, fp64, got 'fp16'"),
        ("train: {fanout: '3;2'}", "fanout must be numbers from 1 up, or all, such as 15,10,5, got '3;2'"),
        ("train: {lr: -1}", "lr must be above 0, got -1"),
        ("train: {lr: .nan}", "lr must be a finite number above 0, got nan"),
        ("train: {alpha: 1.5}", "alpha must be above 0 and at most 1, got 1.5"),
        ("self_training: {as_train: true, threshold: 1}", "threshold must be above 0 and below 1, got 1"),
        ("self_training: {threshold: 0.5}", "threshold belongs to AS-Train, which is off"),
        ("self_training: {as_train: false, delta: 5}", "delta belongs to AS-Train, which is off"),
        ("model: 3", "model must be a mapping of settings, got 3"),
        ("- a\n- b", "the file must be a mapping of settings"),
        ("model: {", "is not YAML: "),
        ("!!python/object/apply:os.system ['touch hacked']", "is not YAML: "),
    ],
)
@pytest.mark.parametrize("kind", [Settings, ResolvedSettings])
def test_a_mistake_in_the_file_is_named_in_one_line(tmp_path, monkeypatch, text, message, kind):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        kind.from_yaml(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "hacked").exists(), "a settings file is never executed"


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the settings file .*nowhere\.yaml"):
        Settings.from_yaml(tmp_path / "nowhere.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InputError, match=r"cannot read the settings file .*binary\.yaml"):
        Settings.from_yaml(tmp_path / "binary.yaml")


@pytest.mark.parametrize("missing", ["train.lr", "model.backbone", "self_training.delta"])
@pytest.mark.parametrize("is_null", [True, False])
def test_the_file_of_a_run_must_be_complete(tmp_path, missing, is_null):
    content = yaml.safe_load(Settings().override(named(as_train=True)).resolve(FACTS).to_yaml())
    section, name = missing.split(".")
    if is_null:
        content[section][name] = None
    else:
        del content[section][name]
    with pytest.raises(InputError, match=rf"settings\.yaml: {missing} is missing; the settings of a run must be"):
        ResolvedSettings.from_yaml(written(tmp_path, yaml.safe_dump(content)))


def test_a_name_belongs_to_one_section():
    names = [field.name for section in SECTIONS.values() for field in fields(section)]
    assert names == list(SETTINGS)
    assert len(names) == len(set(names))


def test_settings_are_replaced_by_name():
    changed = Settings().override(
        named(backbone="gat", epochs=7, undirected=False, as_train=True, pseudo_label_threshold=0.9)
    )
    assert changed.data.undirected is False
    resolved = changed.resolve(FACTS)
    assert (resolved.model.backbone, resolved.train.epochs, resolved.data.undirected) == ("gat", 7, False)
    assert (resolved.self_training.as_train, resolved.self_training.threshold) == (True, 0.9)
    again = resolved.override(named(seed=3, pseudo_label_threshold=0.8))
    assert (again.train.seed, again.self_training.threshold, again.train.epochs) == (3, 0.8, 7)
    assert (resolved.train.seed, Settings()) == (0, Settings(values=named())), "nothing is changed in place"


@pytest.mark.parametrize("start", [Settings(), Settings().resolve(FACTS)])
def test_a_name_that_is_none_is_answered_with_a_close_one_and_all_names(start):
    with pytest.raises(InputError, match=r"no setting 'epoch' \(did you mean 'epochs'\?\); choose from ") as caught:
        start.override(named(epoch=3))
    names = str(caught.value).split("choose from ")[1].split(", ")
    assert names == [*(["preset"] if isinstance(start, Settings) else []), *SETTINGS]
    assert "as_train" in SETTINGS


@pytest.mark.parametrize("start", [Settings(), Settings(preset="simple").resolve(FACTS)])
def test_an_option_of_as_train_needs_as_train(start):
    with pytest.raises(InputError, match=r"delta, threshold belongs to AS-Train, which is off; .*`as_train`"):
        start.override(named(pseudo_label_threshold=0.5, delta=3.0))
    on = start.override(named(as_train=True, pseudo_label_threshold=0.5))
    assert on.override(named(as_train=False)) == start.override(named(as_train=False)), (
        "and what was given for it goes with it"
    )


def test_an_option_of_as_train_that_is_given_later_needs_it_too():
    on = Settings().override(named(as_train=True))
    assert on.override(named(pseudo_label_threshold=0.5)).given == {"as_train": True, "pseudo_label_threshold": 0.5}


@pytest.mark.parametrize("values", [{"hidden": 0}, {"hidden": "8"}, {"dropout": 1.0}, {"labels": "one"}])
def test_a_value_is_checked_wherever_it_is_given(values):
    (name,) = values
    for make in (Settings().override, Settings().resolve(FACTS).override, SECTIONS["model"]):
        with pytest.raises(InputError, match=f"^{name} must be"):
            make(**values)


def test_a_number_of_numpy_is_a_number():
    given_values = Settings().override(named(hidden=np.int64(8), lr=np.float32(0.5))).given
    assert given_values == {"hidden": 8, "lr": 0.5}
    assert (type(given_values["hidden"]), type(given_values["lr"])) == (int, float)


def test_the_file_holds_every_setting():
    content = yaml.safe_load(Settings().override(named(as_train=True)).resolve(FACTS).to_yaml())
    assert list(content) == ["preset", *SECTIONS]
    for name, section in SECTIONS.items():
        assert list(content[name]) == [field.name for field in fields(section)]


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
