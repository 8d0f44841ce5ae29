"""Settings by the last part of their names, which is enough in a test."""

from typing import Any

from legnn.config import SETTINGS, ModelSettings, Settings


def named(**words: Any) -> dict[str, Any]:
    """Returns `{"train.patience": 3}` for `patience=3`; `preset` and dotted names stay as they are."""
    return {_dotted(word): value for word, value in words.items()}


def arguments(**words: Any) -> dict[str, Any]:
    """Returns arguments of a call: settings by the last part of their names, and all others as they are."""
    settings = {word: value for word, value in words.items() if _is_setting(word)}
    return {**{word: value for word, value in words.items() if word not in settings}, "settings": named(**settings)}


def settings_of(**words: Any) -> Settings:
    """Returns the settings with these values."""
    return Settings().override(named(**words))


def model_settings(**words: Any) -> ModelSettings:
    """Returns plain settings of a model with these values."""
    nested: dict[str, Any] = {}
    for name, value in named(**words).items():
        *sections, last = name.split(".")[1:]
        (nested.setdefault(sections[0], {}) if sections else nested)[last] = value
    return ModelSettings(**nested)


def _is_setting(word: str) -> bool:
    return word in SETTINGS or any(name.endswith(f".{word}") for name in SETTINGS)


def _dotted(word: str) -> str:
    if word == "preset" or word in SETTINGS:
        return word
    names = [name for name in SETTINGS if name.endswith(f".{word}")]
    assert names, f"there is no setting {word}"
    return min(names, key=len)
