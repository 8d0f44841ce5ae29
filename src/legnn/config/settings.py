"""All settings of a run: as the user left them, as resolved for a graph, and as a table for the guide."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypedDict

from legnn.config.data import DataSettings
from legnn.config.facts import GraphFacts
from legnn.config.fields import Checked, Section, Setting
from legnn.config.model import LabelUsage, ModelSettings
from legnn.config.presets import PRESETS
from legnn.config.training import SelfTrainingSettings, TrainSettings
from legnn.errors import InputError, did_you_mean, first_line, short_repr

SECTIONS: dict[str, type[Section]] = {
    kind.name: kind for kind in (DataSettings, ModelSettings, TrainSettings, SelfTrainingSettings)
}
SETTINGS: dict[str, Setting] = {setting.name: setting for kind in SECTIONS.values() for setting in kind.settings()}
"""Every setting by its dotted name."""
VERSION = max(setting.since for setting in SETTINGS.values())
"""Version of the settings that a run stores."""
COMMON: dict[str, str] = {setting.keyword: setting.name for setting in SETTINGS.values() if setting.is_common}
"""Keywords of functions and options of commands, and the dotted names of their settings."""

LARGEST_FILE, DEEPEST_FILE = 64 * 1024, 20
"""A settings file with more bytes, or more levels, is refused before it is parsed."""


class CommonSettings(TypedDict, total=False):
    """Settings that functions take as keywords; all others are given by dotted name in `settings`."""

    text: str | None
    split: int | Literal["default"] | None
    backbone: str | None
    labels: LabelUsage | None
    hidden: int | None
    layers: int | None
    dropout: float | None
    seed: int | None
    epochs: int | None
    lr: float | None
    choose_by: str | None
    class_weights: Literal["none", "balanced"] | None
    device: Literal["auto", "cpu", "cuda"] | None
    batch: int | Literal["auto", "full"] | None
    as_train: bool | None


@dataclass(frozen=True, kw_only=True)
class Settings(metaclass=Checked):
    """Settings as the user left them: values by dotted name, and the preset that chooses all others.

    >>> Settings(preset="paper", values={"model.backbone": "gat"}).resolve(facts).train.lr
    """

    preset: str = "recommended"
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def checked(cls, *, preset: str = preset, values: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """Returns the arguments with every value in its type."""
        # an array is no word, and does not compare like one
        if not isinstance(preset, str) or preset not in list(PRESETS):
            close = did_you_mean(preset, PRESETS) if isinstance(preset, str) else ""
            raise InputError(f"preset must be one of {', '.join(PRESETS)}, got {short_repr(preset)}{close}")
        sections = _sections(values)
        flat = {name: value for section in sections.values() for name, value in section.flat().items()}
        return {"preset": preset, "values": {name: flat[name] for name in values}}

    @property
    def data(self) -> DataSettings:
        """Settings of the data, which are needed before the graph is known."""
        chosen = {**PRESETS[self.preset].data(self.values), **self.values}
        data: DataSettings = _sections({n: value for n, value in chosen.items() if n.startswith("data.")})["data"]
        return data

    def override(self, values: Mapping[str, Any]) -> Settings:
        """Returns the settings with some replaced, by dotted name or `preset`; None leaves a setting open again."""
        changed = {**self.values, **values}
        preset = changed.pop("preset", None) or self.preset
        return Settings(preset=preset, values={n: v for n, v in changed.items() if v is not None or n not in SETTINGS})

    def resolve(self, facts: GraphFacts) -> ResolvedSettings:
        """Returns complete settings: the preset chooses the values that were left open."""
        preset = PRESETS[self.preset]
        chosen = {**preset.data(self.values), **preset.choose(facts, self.values)}
        return ResolvedSettings(preset=self.preset, **_sections({**chosen, **self.values}))

    def explain(self, facts: GraphFacts) -> str | None:
        """Returns a sentence that says what the preset chose and why; None where its name says it all."""
        return PRESETS[self.preset].explain(facts, self.values)

    @classmethod
    def from_yaml(cls, path: Path) -> Settings:
        """Reads a settings file, which may leave settings out. Raises `InputError` that names what is wrong in it."""
        content = _read(path)
        content.pop("version", None)
        try:
            return cls().override(content)
        except InputError as error:
            raise InputError(f"{path}: {error}", setting=error.setting) from None


def collect(
    settings: Settings | Mapping[str, Any] | None,
    common: Mapping[str, Any] = MappingProxyType({}),
    *,
    preset: str | None = None,
) -> Settings:
    """Returns the settings of a call: `settings`, and the preset and the common keywords, which win.

    Args:
        settings: an object, or values by dotted name.
        common: keywords of `CommonSettings`; None leaves a setting as it is.
        preset: chooses the settings that are left open.
    """
    for name in common:
        if name not in COMMON:
            names = [f"settings={{{dotted!r}: ...}}" for dotted in names_for(name)]
            advice = f"; give {' or '.join(names)}" if names else did_you_mean(name, COMMON)
            raise InputError(f"there is no argument {name!r}{advice}")
    if settings is None:
        settings = Settings()
    elif not isinstance(settings, Settings):
        if not isinstance(settings, Mapping):
            raise InputError(f"settings must be a mapping from dotted names to values, got {short_repr(settings)}")
        settings = Settings().override(settings)
    words = {COMMON[name]: value for name, value in common.items() if value is not None}
    collected = settings.override({**words, **({} if preset is None else {"preset": preset})})
    idle = sorted(name for name in collected.values if name.startswith("self_training.") and name != AS_TRAIN)
    if idle and AS_TRAIN not in collected.values:
        raise InputError(
            f"{', '.join(idle)} belongs to AS-Train, which is off; switch it on with as_train", setting=AS_TRAIN
        )
    return collected


AS_TRAIN = "self_training.as_train"


def names_for(word: str) -> list[str]:
    """Returns the dotted names of the settings whose last part is `word`."""
    return [setting.name for setting in SETTINGS.values() if setting.keyword == word]


def require_setting(name: object) -> None:
    """Raises `InputError` for a name of no setting."""
    if name not in SETTINGS:
        word = str(name)
        names = names_for(word)
        close = f" (did you mean {' or '.join(map(repr, names))}?)" if names else did_you_mean(word, SETTINGS)
        raise InputError(f"there is no setting {short_repr(name)}{close}; `legnn settings` lists all")


@dataclass(frozen=True, kw_only=True)
class ResolvedSettings:
    """Complete settings of a run."""

    preset: str
    data: DataSettings
    model: ModelSettings
    train: TrainSettings
    self_training: SelfTrainingSettings

    def flat(self) -> dict[str, Any]:
        """Returns all values by dotted name."""
        sections = (self.data, self.model, self.train, self.self_training)
        return {name: value for section in sections for name, value in section.flat().items()}

    def override(self, values: Mapping[str, Any]) -> ResolvedSettings:
        """Returns the settings with some replaced, by dotted name."""
        return ResolvedSettings(preset=self.preset, **_sections({**self.flat(), **values}))

    @property
    def digest(self) -> str:
        """A digest of all values, which a run keeps next to its weights.

        A setting that was added after version 1 counts only where it is not its default, so that the digest of an
        older run stays the same.
        """
        later = {setting.name: setting.default for setting in SETTINGS.values() if setting.since > 1}
        values = {name: value for name, value in self.flat().items() if name not in later or value != later[name]}
        text = json.dumps([self.preset, values], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def to_yaml(self) -> str:
        """Returns the text of the settings file of a run."""
        import yaml

        nested: dict[str, Any] = {"version": VERSION, "preset": self.preset, **_nested(self.flat())}
        # written in C, where PyYAML has it
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        return str(yaml.dump(nested, Dumper=dumper, allow_unicode=True, sort_keys=False))

    @classmethod
    def from_yaml(cls, path: Path) -> ResolvedSettings:
        """Reads the settings file of a run. Raises `InputError` if it is not complete."""
        content = _read(path)
        version = content.pop("version", None)
        if version is None:
            raise InputError(f"{path} was written by an older legnn, whose runs cannot be read; train again")
        if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= VERSION:
            raise InputError(
                f"{path}: version must be a number from 1 to {VERSION}, got {short_repr(version)}; a newer legnn may "
                "read it"
            )
        for name in ["preset", *(setting.name for setting in SETTINGS.values() if setting.since <= version)]:
            if content.get(name) is None:
                raise InputError(f"{path}: {name} is missing; the settings of a run must be complete")
        try:
            return cls(preset=Settings(preset=content.pop("preset")).preset, **_sections(content))
        except InputError as error:
            raise InputError(f"{path}: {error}", setting=error.setting) from None


def settings_table(names: Iterable[str] = ()) -> list[tuple[str, str, str, str]]:
    """Returns a row for each setting, or those of `names`: its name, values, default and help."""
    return [
        (setting.name, _values(setting), default_in_words(setting), setting.help)
        for setting in SETTINGS.values()
        if setting.name in names or not names
    ]


def _values(setting: Setting) -> str:
    if setting.is_switch:
        return "true, false"
    number = "" if setting.number is None else f"number {setting.bounds}".rstrip()
    return ", ".join(filter(None, (number, *setting.choices))) or "text"


def default_in_words(setting: Setting) -> str:
    """Returns the value that a run has by default, as help shows it."""
    value = _recommended().get(setting.name, setting.default)
    if setting.chosen is not None:
        return setting.chosen
    return (
        {True: "true", False: "false"}[value]
        if setting.is_switch
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


@cache
def _recommended() -> dict[str, Any]:
    """The choices of the recommended preset for a graph with one node type."""
    facts = GraphFacts(num_train=1000, num_classes=2, counts_features=False, has_label_edges=False)
    return Settings().resolve(facts).flat()


def _sections(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the sections, with defaults for settings that `values` leaves out."""
    for name in values:
        require_setting(name)
    nested = _nested(values)
    return {name: kind(**nested.get(name, {})) for name, kind in SECTIONS.items()}


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `{"model": {"appnp": {"teleport": 0.1}}}` for `{"model.appnp.teleport": 0.1}`."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        *sections, last = name.split(".")
        section = nested
        for part in sections:
            section = section.setdefault(part, {})
        section[last] = value
    return nested


def _flat(content: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the reverse of `_nested`."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{prefix}{key}"
        if value is None and any(known.startswith(f"{name}.") for known in SETTINGS):
            continue  # an empty section
        flat |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat


def _read(path: Path) -> dict[str, Any]:
    """Returns the values of a settings file by dotted name."""
    import yaml

    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise InputError(f"the settings file {path} has more than {LARGEST_FILE // 1024} kB")
        text = content.decode("utf-8")
        _check_structure(text, path)
        values = yaml.safe_load(text)
    except InputError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the settings file {path}: {error}") from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"the settings file {path} is not YAML: {reason}") from None
    except (ValueError, RecursionError) as error:  # a date or a number that cannot be one
        raise InputError(f"the settings file {path} cannot be read: {first_line(error)}") from None
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: the file must be a mapping of settings, got {short_repr(values)}")
    return _flat(values)


def _check_structure(text: str, path: Path) -> None:
    """Raises `InputError` for a file with too many levels, or with aliases, which may expand beyond all memory."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InputError(f"the settings file {path} repeats parts by `*`; write them out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST_FILE:
            raise InputError(f"the settings file {path} has more than {DEEPEST_FILE} levels")
