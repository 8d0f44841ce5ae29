"""All settings of a run: as the user left them, as resolved for a graph, and as a table for the guide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from textwrap import indent
from types import MappingProxyType
from typing import Any

from legnn.config.data import DataSettings
from legnn.config.facts import GraphFacts
from legnn.config.fields import Checked, Section, Setting
from legnn.config.model import ModelSettings
from legnn.config.presets import PRESETS
from legnn.config.training import SelfTrainingSettings, TrainSettings
from legnn.errors import InputError, did_you_mean, first_line, short_repr

SECTIONS: dict[str, type[Section]] = {
    kind.name: kind for kind in (DataSettings, ModelSettings, TrainSettings, SelfTrainingSettings)
}
SETTINGS: dict[str, Setting] = {one.name: one for kind in SECTIONS.values() for one in kind.settings()}
"""Every setting by its name; a name belongs to one section."""


@dataclass(frozen=True, kw_only=True)
class Settings(metaclass=Checked):
    """Settings as the user left them: what was given, by name, and the preset that chooses the rest.

    >>> Settings().override(backbone="gat", preset="paper").resolve(facts).train.lr
    """

    preset: str = "recommended"
    given: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def checked(cls, *, preset: str = preset, given: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """Returns the arguments with every value in its type."""
        # an array is no word, and does not compare like one
        if not isinstance(preset, str) or preset not in list(PRESETS):
            close = did_you_mean(preset, PRESETS) if isinstance(preset, str) else ""
            raise InputError(f"preset must be one of {', '.join(PRESETS)}, got {short_repr(preset)}{close}")
        _check_names(given, ["preset", *SETTINGS], given.get("as_train", False))
        checked = _sections(given)
        return {"preset": preset, "given": {n: getattr(checked[SETTINGS[n].section], n) for n in given}}

    @property
    def data(self) -> DataSettings:
        """Settings of the data, which are needed before the graph is known."""
        given = {name: value for name, value in self.given.items() if SETTINGS[name].section == DataSettings.name}
        return DataSettings(**{**PRESETS[self.preset].data(self.given), **given})

    def override(self, **values: Any) -> Settings:
        """Returns the settings with some replaced: `override(backbone="gat", epochs=100, preset="paper")`.

        None leaves a setting open again. `as_train=False` also drops what was given for AS-Train.
        """
        preset = values.pop("preset", self.preset)
        drops = "as_train" in values and not values["as_train"]
        kept = {name: value for name, value in self.given.items() if not (drops and _is_of_as_train(name))}
        given = {n: value for n, value in {**kept, **values}.items() if value is not None or n not in SETTINGS}
        return Settings(preset=preset, given=given)

    def resolve(self, facts: GraphFacts) -> ResolvedSettings:
        """Returns complete settings: the preset chooses what was left open."""
        preset = PRESETS[self.preset]
        chosen = {**preset.data(self.given), **preset.choose(facts, self.given)}
        return ResolvedSettings(preset=self.preset, **_sections({**chosen, **self.given}))

    def explain(self, facts: GraphFacts) -> str | None:
        """Returns a sentence that says what the preset chose and why; None where its name says it all."""
        return PRESETS[self.preset].explain(facts, self.given)

    @classmethod
    def from_yaml(cls, path: Path) -> Settings:
        """Reads a settings file, which may leave settings out. Raises `InputError` that names what is wrong in it."""
        content = _read(path)
        try:
            sections = _mapping(content, "the file", ["preset", *SECTIONS])
            given: dict[str, Any] = {}
            for section, kind in SECTIONS.items():
                values = _mapping(sections.get(section), section, [one.name for one in kind.settings()])
                for name, value in values.items():
                    if value is not None:
                        given[name] = SETTINGS[name].check(value, f"{section}.{name}")
            return cls(given=given, preset=sections.get("preset", cls.preset))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class ResolvedSettings:
    """Settings of a run in which nothing is left open."""

    preset: str
    data: DataSettings
    model: ModelSettings
    train: TrainSettings
    self_training: SelfTrainingSettings

    def override(self, **values: Any) -> ResolvedSettings:
        """Returns the settings with some replaced: `override(seed=3)`."""
        _check_names(values, list(SETTINGS), values.get("as_train", self.self_training.as_train))
        # settings of AS-Train are dropped where it is switched off
        drops = "as_train" in values and not values["as_train"]
        changed: dict[str, Any] = {}
        for section in {SETTINGS[name].section for name in values}:
            given = {name: value for name, value in values.items() if SETTINGS[name].section == section}
            is_dropped = drops and section == SelfTrainingSettings.name
            changed[section] = SelfTrainingSettings(**given) if is_dropped else replace(getattr(self, section), **given)
        return replace(self, **changed)

    def to_yaml(self) -> str:
        """Returns the text of `settings.yaml`. Of AS-Train, only that it is off is written if it is off."""
        lines = [_yaml_line("preset", self.preset)]
        for name in SECTIONS:
            is_off = name == SelfTrainingSettings.name and not self.self_training.as_train
            values = {"as_train": False} if is_off else vars(getattr(self, name))
            lines += [f"{name}:\n", *(indent(_yaml_line(*one), "  ") for one in values.items())]
        return "".join(lines)

    @classmethod
    def from_yaml(cls, path: Path) -> ResolvedSettings:
        """Reads the settings file of a run. Raises `InputError` if it is not complete."""
        settings = Settings.from_yaml(path)
        for one in SETTINGS.values():
            if one.name not in settings.given and (settings.given.get("as_train") or not _is_of_as_train(one.name)):
                raise InputError(f"{path}: {one.section}.{one.name} is missing; the settings of a run must be complete")
        return cls(preset=settings.preset, **_sections(settings.given))


def settings_table() -> str:
    """Returns a Markdown table of every setting: its name, values, default and help."""
    lines = ["| setting | values | default | |", "|---|---|---|---|"]
    for section in SECTIONS.values():
        lines.append(f"| **{section.title}** (`{section.name}`) | | | |")
        for one in section.settings():
            lines.append(f"| `{one.name}` | {_values(one)} | {one.shown_default} | {one.help} |")
    return "\n".join(lines) + "\n"


def _values(one: Setting) -> str:
    if one.is_switch:
        return "yes, no"
    number = "" if one.number is None else f"number {one.bounds}".rstrip()
    words = ", ".join(f"`{word}`" for word in one.choices)
    return ", ".join(filter(None, (number, words))) or "text"


@lru_cache(1024, typed=True)
def _yaml_line(name: str, value: object) -> str:
    """A setting in YAML, kept: PyYAML takes two milliseconds for all of them, and other runs have most in common."""
    import yaml

    # written in C, where PyYAML has it
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump({name: value}, Dumper=dumper, allow_unicode=True))


def _sections(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the sections, with defaults for what `values` leaves out; those of AS-Train count if it is on."""
    parts: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    for name, value in values.items():
        if values.get("as_train") or not _is_of_as_train(name):
            parts[SETTINGS[name].section][name] = value
    return {name: kind(**parts[name]) for name, kind in SECTIONS.items()}


def _is_of_as_train(name: str) -> bool:
    return name != "as_train" and name in SETTINGS and SETTINGS[name].section == SelfTrainingSettings.name


def _check_names(values: Mapping[str, Any], known: list[str], as_train: bool) -> None:
    """Raises `InputError` for a name that is no setting, or one of AS-Train while it is off."""
    unknown = sorted(set(values) - set(SETTINGS))
    if unknown:
        close = did_you_mean(unknown[0], known)
        raise InputError(f"there is no setting {unknown[0]!r}{close}; choose from {', '.join(known)}")
    idle = sorted(filter(_is_of_as_train, values))
    if idle and not as_train:
        raise InputError(f"{', '.join(idle)} belongs to AS-Train, which is off; switch it on with `as_train`")


def _read(path: Path) -> object:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        if any(isinstance(one, yaml.AliasEvent) for one in yaml.parse(text, Loader=yaml.SafeLoader)):
            # a few lines of them can stand for more than any memory
            raise InputError(f"the settings file {path} repeats parts by `*`; write them out")
        return yaml.safe_load(text)
    except InputError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the settings file {path}: {error}") from None
    except yaml.YAMLError as error:
        place = " ".join(str(error).split())
        raise InputError(f"the settings file {path} is not YAML: {place}") from None
    except (ValueError, RecursionError) as error:  # a date or a number that cannot be one
        raise InputError(f"the settings file {path} cannot be read: {first_line(error)}") from None


def _mapping(content: object, what: str, known: list[str]) -> Mapping[str, Any]:
    """Returns `content`. Raises `InputError` if it is no mapping, or has a key that is not known."""
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise InputError(f"{what} must be a mapping of settings, got {short_repr(content)}")
    for key in content:
        if key not in known:
            full = (f"{what}." if what in SECTIONS else "") + str(key)[:100]
            raise InputError(f"unknown key {full!r}{did_you_mean(str(key), known)}; known: {', '.join(known)}")
    return content
