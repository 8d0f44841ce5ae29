"""Options are generated from the settings, and messages name them as a person types them."""

from inspect import signature
from pathlib import Path

import pytest
from tests.named import named
from typer.testing import CliRunner

import legnn
from legnn import cli
from legnn.cli.options import flag, with_flags
from legnn.cli.training import new_folder, train
from legnn.config import PRESETS, SECTIONS, SETTINGS, Settings
from legnn.config.designs import DESIGNS
from legnn.config.duration import parse_duration

ENVIRONMENT = {"COLUMNS": "400", "TERM": "dumb", "NO_COLOR": "1"}


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(cli.app, list(arguments), env=ENVIRONMENT)
    assert done.exit_code == 0, done.output
    return done.output


def test_every_setting_has_an_option_under_its_own_name():
    options = set(signature(train).parameters) - {"data", "out", "resume", "config", "seeds", "cross_fit", "preset"}
    assert options == set(SETTINGS) - {"source"}


def test_help_shows_flag_help_choices_and_default_of_every_setting():
    lines = shown("train", "--help").splitlines()
    for name, one in SETTINGS.items():
        if name == "source":
            continue
        (line,) = [line for line in lines if f"│ {flag(name)} " in line]
        assert one.help in line
        assert f"[{one.shown_default}]" in line
        assert all(choice in line for choice in one.choices)
        assert not one.is_switch or flag(name, "no-") in line
    for section in SECTIONS.values():
        assert any(line.startswith(f"╭─ {section.title} ") for line in lines)


def test_brackets_in_help_are_shown_as_they_are():
    for command in ("train", "predict", "prepare", "datasets", "plot"):
        assert "\\" not in shown(command, "--help")
        assert "[default: None]" not in shown(command, "--help")


def test_help_lists_the_presets_in_a_line_each():
    text = shown("train", "--help")
    for name, preset in PRESETS.items():
        assert name in text if name in DESIGNS else f"{name}: {preset.__doc__.splitlines()[0]}" in text


def test_help_says_that_label_at_input_is_on_and_not_chosen_by_labels():
    (line,) = [line for line in shown("train", "--help").splitlines() if "--label-at-input" in line]
    assert "[yes]" in line
    assert "by labels" not in line


def test_prepare_has_the_options_of_the_data_and_no_others():
    text = shown("prepare", "--help")
    for name, one in SETTINGS.items():
        assert (f"{flag(name)} " in text) == (one.section == "data" and name != "source")


def test_the_version_is_printed():
    assert shown("--version") == f"legnn {legnn.__version__}\n"


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("give `batch=1024` or a smaller `hidden`", "give --batch 1024 or a smaller --hidden"),
        ("switch it on with `as_train`", "switch it on with --as-train"),
        ("switch it on with `as_train=True`", "switch it on with --as-train"),
        ("give `use_tc=False`", "give --no-tc"),
        ("another `out`, or `resume`", "another --out, or --resume"),
        ("`Data` and `x=1` stay", "`Data` and `x=1` stay"),
        ("hidden = 30 and heads = 4", "hidden = 30 and heads = 4"),
    ],
)
def test_a_message_names_options_where_the_library_names_settings(message, typed):
    assert with_flags(message) == typed


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
