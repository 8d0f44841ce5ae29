"""Settings: their file, their names, and what is chosen from the data."""

from dataclasses import fields

import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.graphs import small_data

from legnn.config import DataSettings
from legnn.config.settings import FEW_LABELS, Settings, resolve
from legnn.config.training import ASTrain, TrainSettings
from legnn.datasets import load
from legnn.errors import InputError
from legnn.nn import ModelSettings

SECTIONS = (DataSettings, ModelSettings, TrainSettings, ASTrain)


def written(tmp_path, text: str):
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


overrides = st.fixed_dictionaries(
    {},
    optional={
        "backbone": st.sampled_from(["gcn", "sage", "gat", "gatv2", "transformer", "gin"]),
        "labels": st.sampled_from(["vanilla", "concat", "addition", "enhanced"]),
        "hidden": st.none() | st.integers(1, 512),
        "dropout": st.none() | st.floats(0, 0.99),
        "lr": st.none() | st.floats(1e-8, 1),
        "alpha": st.none() | st.floats(0.01, 1),
        "residual": st.none() | st.sampled_from(["none", "identity", "linear"]),
        "selection": st.booleans(),
        "precision": st.sampled_from(["auto", "fp32", "tf32", "bf16"]),
        "seed": st.integers(0, 2**31),
        "source": st.text(min_size=1, max_size=10).filter(lambda text: text.isprintable()),
        "as_train": st.booleans() | st.builds(ASTrain, threshold=st.floats(0.01, 0.99), use_tc=st.booleans()),
    },
)


@given(values=overrides)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(tmp_path, values):
    before = Settings().override(**values)
    assert Settings.from_yaml(written(tmp_path, before.to_yaml())) == before


def test_an_empty_file_means_the_defaults(tmp_path):
    assert Settings.from_yaml(written(tmp_path, "")) == Settings()
    assert Settings.from_yaml(written(tmp_path, "model:\n  backbone: gat\n")).model.backbone == "gat"


@pytest.mark.parametrize("text", ["1e-3", "1.0e-3", "0.001", "'0.001'"])
def test_a_number_may_be_written_as_people_write_it(tmp_path, text):
    assert Settings.from_yaml(written(tmp_path, f"train: {{lr: {text}}}")).train.lr == 0.001


def test_a_whole_number_will_do_for_a_fraction(tmp_path):
    weight_decay = Settings.from_yaml(written(tmp_path, "train: {weight_decay: 0}")).train.weight_decay
    assert weight_decay == 0.0
    assert type(weight_decay) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: {bakbone: gcn}", r"unknown key 'model\.bakbone' \(did you mean 'backbone'\?\); known: backbone, "),
        ("modle: {}", r"unknown key 'modle' \(did you mean 'model'\?\); known: data, model, train, as_train"),
        ("as_train: {treshold: 0.5}", r"unknown key 'as_train\.treshold' \(did you mean 'threshold'\?\)"),
        ("7: 8", "unknown key '7'"),
        ("train: {epochs: many}", "train.epochs must be a whole number or null, got 'many'"),
        ("train: {epochs: 1.5}", "train.epochs must be a whole number or null, got 1.5"),
        ("train: {epochs: true}", "train.epochs must be a whole number or null, got True"),
        ("train: {selection: 1}", "train.selection must be true or false, got 1"),
        ("train: {lr: fast}", "train.lr must be a number or null, got 'fast'"),
        ("train: {seed: null}", "train.seed must be a whole number, got None"),
        ("model: {backbone: [gcn]}", r"model.backbone must be a word, got \['gcn'\]"),
        ("model: {backbone: gcnn}", r"backbone must be one of gcn, .*, got 'gcnn' \(did you mean 'gcn'\?\)"),
        ("model: {scale: rows}", "scale must be one of none, row, entries, standard, got 'rows'"),
        ("train: {precision: fp16}", "precision must be one of auto, fp32, tf32, bf16, got 'fp16'"),
        ("train: {lr: -1}", "lr must be above 0, got -1"),
        ("train: {lr: .nan}", "lr must be above 0, got nan"),
        ("train: {alpha: 1.5}", "alpha must be above 0 and at most 1, got 1.5"),
        ("as_train: {threshold: 1}", "threshold must be above 0 and below 1, got 1"),
        ("model: 3", "model must be a mapping of settings, got 3"),
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


def test_a_name_belongs_to_one_section():
    names = [field.name for section in SECTIONS for field in fields(section)]
    assert len(names) == len(set(names))
    assert "as_train" not in names


def test_settings_are_replaced_by_name():
    changed = Settings().override(backbone="gat", epochs=7, undirected=False, as_train=True, threshold=0.9)
    assert changed.model.backbone == "gat"
    assert changed.train.epochs == 7
    assert changed.data.undirected is False
    assert changed.as_train == ASTrain(threshold=0.9)
    assert changed.override(as_train=False).as_train is None
    assert Settings() == Settings(), "nothing is changed in place"


def test_a_name_that_is_none_is_answered_with_a_close_one():
    with pytest.raises(InputError, match=r"no setting 'epoch' \(did you mean 'epochs'\?\); choose from source, "):
        Settings().override(epoch=3)


def test_an_option_of_as_train_needs_as_train():
    with pytest.raises(InputError, match=r"delta, threshold belongs to AS-Train, which is off; .*--as-train"):
        Settings().override(threshold=0.5, delta=3.0)


def labeled(per_class: int, classes: int = 3):
    nodes = 3 * classes * per_class
    data = small_data(nodes=nodes, classes=classes)
    train = torch.arange(nodes) < classes * per_class
    val = ~train & (torch.arange(nodes) < 2 * classes * per_class)
    data.y = torch.arange(nodes) % classes
    data.train_mask, data.val_mask, data.test_mask = train, val, ~train & ~val
    return load(data)


def test_nothing_is_left_open_for_few_labels_or_for_many():
    for per_class in (5, FEW_LABELS + 1):
        chosen = resolve(Settings(), labeled(per_class))
        open_fields = [
            field.name
            for section in (chosen.model, chosen.train)
            for field in fields(section)
            if getattr(section, field.name) is None
        ]
        assert open_fields == []


def test_few_labels_get_a_smaller_model_than_many():
    few, many = resolve(Settings(), labeled(FEW_LABELS - 1)), resolve(Settings(), labeled(FEW_LABELS))
    assert few.model.layers < many.model.layers
    assert few.model.hidden <= many.model.hidden
    assert few.train.weight_decay > many.train.weight_decay


def test_what_is_given_is_not_chosen():
    given_values = {
        "hidden": 12,
        "layers": 1,
        "lr": 0.5,
        "epochs": 3,
        "dropout": 0.0,
        "residual": "linear",
        "scale": "none",
    }
    chosen = resolve(Settings().override(**given_values), labeled(5))
    found = {name: getattr(chosen.model, name, getattr(chosen.train, name, None)) for name in given_values}
    assert found == given_values


def test_choosing_twice_changes_nothing():
    data = labeled(5)
    once = resolve(Settings(), data)
    assert resolve(once, data) == once


def test_word_counts_keep_their_zeros_and_other_features_are_standardized():
    data = labeled(5)
    assert resolve(Settings(), data).model.scale == "standard"
    data.x = (torch.rand(data.num_nodes, 50) > 0.9).float()
    assert resolve(Settings(), data).model.scale == "entries"
    data.x[0, 0] = -1
    assert resolve(Settings(), data).model.scale == "standard"
    data.x = torch.eye(2).repeat(data.num_nodes, 1)  # half of them zero are not most of them
    assert resolve(Settings(), data).model.scale == "standard"


def test_label_edges_are_used_where_the_data_come_with_them():
    data = labeled(5)
    assert resolve(Settings(), data).model.label_edges is False
    data.label_adjacency = torch.eye(3)
    assert resolve(Settings(), data).model.label_edges is True
    assert resolve(Settings().override(labels="concat"), data).model.label_edges is False


def test_the_file_holds_every_setting():
    content = yaml.safe_load(Settings().override(as_train=True).to_yaml())
    for name, section in zip(("data", "model", "train", "as_train"), SECTIONS, strict=True):
        assert list(content[name]) == [field.name for field in fields(section)]
