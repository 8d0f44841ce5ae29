"""Options of common settings are generated, and all others are given by `--set`."""

import re
from inspect import signature
from pathlib import Path

import pytest
from tests.named import named
from typer.testing import CliRunner

import legnn
from legnn import cli
from legnn.cli import entry_point
from legnn.cli.options import as_option, refuse_unknown_options
from legnn.cli.training import new_folder, train
from legnn.config import COMMON, SETTINGS, GraphFacts, Settings
from legnn.config.duration import parse_duration
from legnn.config.settings import default_in_words
from legnn.training.metrics import METRICS

ENVIRONMENT = {"TERM": "dumb", "NO_COLOR": "1"}


def shown(*arguments: str, width: int = 400) -> str:
    done = CliRunner().invoke(cli.make_app(), list(arguments), env={**ENVIRONMENT, "COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    return done.output


def test_train_has_an_option_for_each_common_setting_and_set_for_all_others():
    others = {"data", "out", "resume", "config", "seeds", "cross_fit", "preset", "set_"}
    assert set(signature(train).parameters) == {*COMMON, *others}


def test_help_of_train_fits_into_sixty_lines():
    assert len(shown("train", "--help", width=100).splitlines()) <= 60


def test_help_shows_flag_help_choices_and_default_of_every_common_setting():
    lines = shown("train", "--help").splitlines()
    for word, name in COMMON.items():
        setting = SETTINGS[name]
        flag = f"--{word}".replace("_", "-")
        (line,) = [line for line in lines if f"│ {flag} " in line]
        assert setting.help in line
        assert f"[{default_in_words(setting)}]" in line
        assert all(choice in line for choice in setting.choices)


def test_the_defaults_that_help_shows_are_those_of_a_run_on_a_graph_with_one_node_type():
    facts = GraphFacts(num_train=300, num_classes=3, counts_features=True, has_label_edges=False)
    resolved = Settings().resolve(facts).flat()
    for name, setting in SETTINGS.items():
        if setting.chosen is None:
            assert setting.check(setting.parse(default_in_words(setting))) == resolved[name], name


def test_commands_and_subcommands_are_twelve_at_most():
    names = [*entry_point.COMMANDS]
    assert len(names) <= 9
    apps = [entry_point.make_app([name]) for name in names]
    groups = [group.typer_instance for app in apps for group in app.registered_groups]
    commands = [command for app in [*apps, *groups] for command in app.registered_commands]
    assert len(commands) <= 12


def test_settings_lists_all_of_them_or_a_part():
    everything = shown("settings")
    assert [name for name in SETTINGS if f" {name} " not in everything] == []
    part = shown("settings", "model.appnp")
    assert "model.appnp.teleport" in part
    assert "train.lr" not in part
    assert "model.attention.heads" in shown("settings", "heads")
    metrics = shown("settings", "train.choose_by")
    assert all((name in metrics) == metric.can_choose for name, metric in METRICS.items())


def test_brackets_in_help_are_shown_as_they_are():
    for words in (["train"], ["predict"], ["data", "prepare"], ["data", "list"], ["settings"]):
        assert "\\" not in shown(*words, "--help")
        assert "[default: None]" not in shown(*words, "--help")


def test_the_version_is_printed():
    assert shown("--version") == f"legnn {legnn.__version__}\n"


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["--heads", "4"], "there is no option --heads; give --set model.attention.heads=VALUE"),
        (["--no-bias"], "there is no option --no-bias; give --set model.bias=VALUE"),
        (["--alpha=0.3"], "give --set model.label_propagation.alpha=VALUE or --set train.alpha=VALUE"),
    ],
)
def test_an_option_of_another_setting_is_answered_with_set(words, advice):
    with pytest.raises(legnn.InputError, match=re.escape(advice)):
        refuse_unknown_options(words, signature(train).parameters)


def test_an_error_of_a_setting_is_shown_with_the_option_of_the_command():
    declared = signature(train).parameters
    assert as_option("model.hidden", declared) == "--hidden"
    assert as_option("self_training.as_train", declared) == "--as-train"
    assert as_option("train.patience", declared) == "--set train.patience=VALUE"
    assert as_option("model.hidden", {}) == "--set model.hidden=VALUE"


@pytest.mark.parametrize(
    ("preset", "given", "name"),
    [
        ("recommended", {}, "digits"),
        ("recommended", {"backbone": "gat"}, "digits-gat"),
        ("simple", {}, "digits-simple"),
        ("published", {}, "digits-gat"),
        ("sign", {}, "digits-sign"),
        ("rgcn", {"labels": "enhanced", "as_train": True}, "digits-rgcn-enhanced-as-train"),
    ],
)
def test_a_run_folder_is_named_after_the_model_that_the_preset_trains(tmp_path, monkeypatch, preset, given, name):
    monkeypatch.chdir(tmp_path)
    assert new_folder("digits", Settings(preset=preset, values=named(**given))) == Path("runs") / name


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2 h ", 7200), ("0.5s", 0.5)]
)
def test_a_duration_is_a_number_and_a_unit(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "10 minutes", "-5m", "0", "1e3", "1h30m", "nan", "inf", "9" * 400, "٣m"])
def test_another_duration_is_refused_with_what_would_be_right(text):
    with pytest.raises(legnn.InputError, match=r"budget must be a time above 0 such as 90s, 10m or 1\.5h, got"):
        parse_duration(text)
