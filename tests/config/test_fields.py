"""Declarations of settings, and the texts that are generated from them."""

import subprocess
import sys
from dataclasses import fields
from typing import get_type_hints

import pytest
from tests.named import model_settings

import legnn
from legnn.config import COMMON, SETTINGS, CommonSettings, ModelSettings
from legnn.config.model import BACKBONES, register_choice
from legnn.config.settings import SECTIONS
from legnn.errors import InputError


@pytest.mark.parametrize("name", SETTINGS)
def test_a_default_has_its_own_type_and_is_in_range(name):
    setting = SETTINGS[name]
    assert setting.check(setting.default) == setting.default
    assert type(setting.check(setting.default)) is type(setting.default)
    assert setting.number is not None or not setting.choices or setting.default in setting.choices
    assert setting.help
    assert not setting.help.endswith(".")


def test_a_section_made_directly_has_the_defaults():
    for section in SECTIONS.values():
        made = section()
        assert all(getattr(made, field.name) == field.default for field in fields(section))


def test_a_nested_section_is_made_from_a_mapping():
    model = ModelSettings(hidden=8, appnp={"teleport": 0.2})
    assert (model.appnp.teleport, model.appnp.hops) == (0.2, ModelSettings().appnp.hops)
    with pytest.raises(InputError, match=r"model\.appnp\.teleport must be at least 0 and at most 1, got 2"):
        ModelSettings(appnp={"teleport": 2})


def test_common_settings_are_the_fifteen_typed_keywords():
    assert set(COMMON) == set(get_type_hints(CommonSettings))
    assert len(COMMON) == 15
    assert all(name.endswith(f".{word}") for word, name in COMMON.items())


def test_the_names_of_backbones_are_those_of_the_layers_and_a_new_one_is_added():
    # in a new process: another test may have registered one
    code = (
        "from legnn.config.model import BACKBONES as names, PROPAGATED\n"
        "from legnn.nn.backbones import BACKBONES, register_backbone\n"
        "assert sorted(names) == sorted([*BACKBONES, *PROPAGATED]), names\n"
        "register_backbone('another', BACKBONES['gcn'])\n"
        "assert names[-1] == 'another', names\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_choice_is_listed_once():
    before = list(BACKBONES)
    register_choice(BACKBONES, "gcn")
    assert before == BACKBONES


def test_a_keyword_that_is_no_common_setting_is_answered_with_its_dotted_name():
    with pytest.raises(
        InputError, match=r"there is no argument 'heads'; give settings=\{'model\.attention\.heads': \.\.\.\}"
    ):
        legnn.train("digits", heads=4)


def test_a_number_too_long_to_be_written_is_refused_in_words():
    with pytest.raises(InputError, match=r"hidden must be .*, got a number of thousands of digits"):
        model_settings(hidden=10**5000)
