"""Declarations of settings: what is generated from them agrees with them."""

import pydoc
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from tests.named import model_settings

import legnn
from legnn.config import SECTIONS, SETTINGS, settings_table
from legnn.config.model import BACKBONES, register_choice
from legnn.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_default_is_of_its_own_kind_and_in_range(name):
    one = SETTINGS[name]
    assert one.check(one.default) == one.default
    assert type(one.check(one.default)) is type(one.default)
    assert one.help
    assert not one.help.endswith(".")


def test_a_section_made_directly_has_the_defaults():
    for section in SECTIONS.values():
        made = section()
        assert all(getattr(made, field.name) == field.default for field in fields(section))


@pytest.mark.parametrize("section", SECTIONS)
def test_the_default_of_a_choice_is_one_of_them(section):
    for one in SECTIONS[section].settings():
        assert one.number is not None or not one.choices or one.default in one.choices


def test_the_guide_holds_the_table_of_settings():
    guide = (ROOT / "docs" / "guide" / "settings.md").read_text(encoding="utf-8")
    assert settings_table() in guide, "write what settings_table() returns into docs/guide/settings.md"
    for name in SETTINGS:
        assert f"| `{name}` |" in guide


def test_the_names_of_backbones_are_those_of_the_layers_and_a_new_one_is_added():
    # in a new process: another test may have registered one
    code = (
        "from legnn.config.model import BACKBONES as names, PROPAGATED\n"
        "from legnn.nn.backbones import BACKBONES, register_backbone\n"
        "assert sorted(names) == sorted([*BACKBONES, *PROPAGATED]), names\n"
        "register_backbone('mine', BACKBONES['gcn'])\n"
        "assert names[-1] == 'mine', names\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_choice_is_listed_once():
    before = list(BACKBONES)
    register_choice(BACKBONES, "gcn")
    assert before == BACKBONES


def test_help_of_what_takes_settings_lists_them_all():
    for function in (legnn.train, legnn.train_seeds):
        text = pydoc.render_doc(function, renderer=pydoc.plaintext)
        assert all(f"{name}: {one.help}" in text for name, one in SETTINGS.items() if name != "source")
        assert "choose_by: " in text
        assert "[accuracy]" in text
        assert text.index("on_epoch: ") < text.index("Training:"), "after the arguments"


def test_a_number_too_long_to_be_written_is_refused_in_words():
    with pytest.raises(InputError, match=r"hidden must be .*, got a number of thousands of digits"):
        model_settings(hidden=10**5000)
