"""All settings of a run in one object, their file, and what is chosen from the data."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from legnn.config import DataSettings
from legnn.config.facts import GraphFacts
from legnn.config.model import ModelSettings
from legnn.config.training import ASTrain, TrainSettings
from legnn.errors import InputError, did_you_mean

FEW_LABELS = 50
"""Below so many training nodes a class, a small model with strong regularization does better than the paper's."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Data, model, training, and AS-Train where it is used. None inside means: chosen from the data."""

    data: DataSettings = field(default_factory=DataSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    as_train: ASTrain | None = None

    def override(self, **values: Any) -> Settings:
        """The same settings with some replaced, each named by itself: `override(backbone="gat", epochs=100)`.

        `as_train=True` switches AS-Train on, `False` off. A name belongs to one section, so no section is named.
        """
        as_train = values.pop("as_train", None)
        settings = self
        if isinstance(as_train, ASTrain):
            settings = replace(settings, as_train=as_train)
        elif as_train is not None:
            settings = replace(settings, as_train=(settings.as_train or ASTrain()) if as_train else None)
        for section, kind in _SECTIONS.items():
            mine = {f.name: values.pop(f.name) for f in fields(kind) if f.name in values}
            if not mine:
                continue
            current = getattr(settings, section)
            if current is None:
                names = ", ".join(sorted(mine))
                raise InputError(f"{names} belongs to AS-Train, which is off; switch it on with as_train (--as-train)")
            settings = replace(settings, **{section: replace(current, **mine)})
        if values:
            known = [f.name for kind in _SECTIONS.values() for f in fields(kind)]
            name = sorted(values)[0]
            raise InputError(f"there is no setting {name!r}{did_you_mean(name, known)}; choose from {', '.join(known)}")
        return settings

    def to_yaml(self) -> str:
        """As the text of `settings.yaml`."""
        text: str = yaml.safe_dump(asdict(self), sort_keys=False, allow_unicode=True)
        return text

    @classmethod
    def from_yaml(cls, path: Path) -> Settings:
        """From a settings file; a key it does not know, or a value of the wrong kind, is refused by name."""
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the settings file {path}: {error}") from None
        except yaml.YAMLError as error:
            place = " ".join(str(error).split())
            raise InputError(f"the settings file {path} is not YAML: {place}") from None
        return _build(cls, {} if content is None else content, "", path)


_SECTIONS: dict[str, type] = {"data": DataSettings, "model": ModelSettings, "train": TrainSettings, "as_train": ASTrain}


def resolve(settings: Settings, facts: GraphFacts) -> Settings:
    """Choose what was left open, by how many labels there are.

    With many: the paper's three layers with batch norm and residuals. With few those overfit, and half of the labels
    are too many to give away: two narrow layers, no norm, a strong penalty on the projection of the features, and a
    larger part of the labels predicted. The values come from comparisons on Cora, CiteSeer and PubMed (few) and on
    debian (many); docs/results.md says how far they can be trusted.
    """
    few = facts.num_train / max(facts.num_classes, 1) < FEW_LABELS
    model: dict[str, Any] = {
        "hidden": 64 if few else 256,
        "layers": 2 if few else 3,
        # GraphSAGE's root weight is a linear residual already
        "residual": "none" if few else "identity" if settings.model.backbone == "sage" else "linear",
        "norm": "none" if few else "batch",
        "dropout": 0.5,
        "input_dropout": 0.5 if few else 0.1,
        "label_edges": settings.model.labels == "enhanced" and facts.has_label_edges,
        "label_at_input": True,
        # Word counts keep their zeros and get one scale; other features are standardized. Dividing each row by its sum,
        # as is often done with word counts, makes inputs so small that the projection has to grow a hundredfold, and
        # with few labels it grows into noise.
        "scale": "entries" if facts.counts_features else "standard",
    }
    train: dict[str, Any] = {
        "epochs": 300 if few else 500,
        "patience": 100,
        "lr": 0.003 if few else 0.01,
        "weight_decay": 0.05 if few else 0.0,
        "alpha": 0.7 if few else 0.5,
    }
    chosen = _fill(settings.model, model)
    assert chosen.layers is not None
    # the paper's 15, 10, 5 for its three layers, from the input side
    train["fanout"] = ",".join(map(str, [15, 10, *[5] * chosen.layers][: chosen.layers]))
    return replace(settings, model=chosen, train=_fill(settings.train, train))


Section = TypeVar("Section", ModelSettings, TrainSettings)


def _fill(section: Section, chosen: Mapping[str, Any]) -> Section:
    return replace(section, **{name: value for name, value in chosen.items() if getattr(section, name) is None})


T = TypeVar("T")


def _build(kind: type[T], content: object, where: str, path: Path) -> T:
    if not isinstance(content, Mapping):
        raise InputError(f"{path}: {where or 'the file'} must be a mapping of settings, got {content!r}")
    hints = typing.get_type_hints(kind)
    unknown = [key for key in content if key not in hints]
    if unknown:
        full = f"{where}.{unknown[0]}".lstrip(".")
        raise InputError(
            f"{path}: unknown key {full!r}{did_you_mean(str(unknown[0]), hints)}; known: {', '.join(hints)}"
        )
    values = {key: _convert(hints[key], value, f"{where}.{key}".lstrip("."), path) for key, value in content.items()}
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _convert(hint: Any, value: object, where: str, path: Path) -> Any:
    """Check `value` against a field's type: a section, a choice, or one of bool, int, float, str, maybe None."""
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    options = typing.get_args(hint) if is_union else (hint,)
    if value is None and type(None) in options:
        return None
    for option in options:
        if is_dataclass(option) and isinstance(option, type):
            return _build(option, value, where, path)
        if typing.get_origin(option) is typing.Literal and isinstance(value, str):
            return value
        if option is float and isinstance(value, str):
            # YAML reads 1e-3, with no point, as a word
            try:
                return float(value)
            except ValueError:
                continue
        if option is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(option, type) and type(value) is option:
            return value
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a word", type(None): "null"}
    expected = " or ".join(words.get(option, "a word") for option in options)
    raise InputError(f"{path}: {where} must be {expected}, got {value!r}")
