"""Options of the commands: the common settings, and `--set` for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from legnn.config import COMMON, SETTINGS
from legnn.config.fields import Setting
from legnn.config.settings import default_in_words, names_for, require_setting
from legnn.errors import InputError

Command = Callable[..., None]


def option(help: str, *names: str, metavar: str | None = None) -> Any:
    """Returns an option whose help states its default in brackets."""
    return typer.Option(*names, help=_plain(help), metavar=metavar, show_default=False)


def argument(help: str) -> Any:
    """Returns an argument whose help states its default in brackets."""
    return typer.Argument(help=_plain(help), show_default=False)


def _plain(text: str) -> str:
    """Returns help whose brackets are shown, not read as markup."""
    return text.replace("[", r"\[")


SetOption = Annotated[
    list[str] | None,
    option("Another setting, any number of times; `legnn settings` lists all", "--set", metavar="NAME=VALUE"),
]


def parse_settings(texts: Sequence[str] | None, *accepted: str) -> dict[str, Any]:
    """Returns the values of `--set NAME=VALUE` by dotted name.

    Args:
        texts: one for each `--set`.
        accepted: beginnings of the names that the command uses; all if there are none.
    """
    values: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set needs NAME=VALUE, such as --set train.lr=0.01, got {text!r}")
        name = name.strip()
        require_setting(name)
        if accepted and not name.startswith(accepted):
            raise InputError(f"this command does not use {name}; it uses {', '.join(accepted)}")
        values[name] = SETTINGS[name].check(SETTINGS[name].parse(value))
    return values


def parse_device(texts: Sequence[str] | None) -> str:
    """Returns the device that `--set train.device=…` names, for a command that uses no other setting."""
    return str(parse_settings(texts, "train.device").get("train.device", "auto"))


def check_suffix(path: Path | None, content: str, *suffixes: str) -> None:
    """Raises `InputError` for a file with another suffix than `content` is written to."""
    if path is not None and path.suffix not in suffixes:
        raise InputError(f"{content} to a {' or a '.join(suffixes)} file, not to {path}")


def with_settings(command: Command) -> Command:
    """Replaces the parameter `settings` of a command by `--set` and an option for each common setting.

    The command gets the values by dotted name. The settings check them: the words of a refusal are the same in Python.
    """
    common = {word: SETTINGS[name] for word, name in COMMON.items()}

    @wraps(command)
    def run(**values: Any) -> None:
        settings = parse_settings(values.pop("set_"))
        for word, setting in common.items():
            value = values.pop(word)
            if value is not None:
                settings[setting.name] = setting.check(setting.parse(value) if isinstance(value, str) else value)
        command(**values, settings=settings)

    declared = list(signature(command, eval_str=True).parameters.values())
    position = next(k for k, parameter in enumerate(declared) if parameter.name == "settings")
    generated = [
        *(_parameter(word, setting) for word, setting in common.items()),
        Parameter("set_", Parameter.KEYWORD_ONLY, default=None, annotation=SetOption),
    ]
    every = [*declared[:position], *generated, *declared[position + 1 :]]
    every = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in every]
    # Typer reads both
    run.__signature__ = Signature(every)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return run


def _parameter(word: str, setting: Setting) -> Parameter:
    flag = f"--{word}".replace("_", "-")
    choices = f" ({' | '.join(setting.choices)})" if setting.choices else ""
    help = f"{setting.help}{choices} [{default_in_words(setting)}]"
    kind: Any = Annotated[str | None, option(help, flag, metavar="TEXT" if setting.number is None else "NUMBER")]
    if setting.is_switch:
        kind = Annotated[bool | None, option(help, f"{flag}/--no-{flag[2:]}")]
    return Parameter(word, Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def refuse_unknown_options(arguments: Sequence[str], declared: Mapping[str, Any]) -> None:
    """Raises `InputError` with the right `--set` for an option that is the name of a setting.

    Args:
        arguments: the words after the name of the command.
        declared: parameters of the command.
    """
    for word in arguments:
        name = word.partition("=")[0].removeprefix("--").replace("-", "_")
        if not word.startswith("--") or name in declared or name.removeprefix("no_") in declared:
            continue
        names = names_for(name) or names_for(name.removeprefix("no_"))
        if names:
            advice = " or ".join(f"--set {dotted}=VALUE" for dotted in names)
            raise InputError(f"there is no option {word.partition('=')[0]}; give {advice}")


def as_option(name: str, declared: Mapping[str, Any]) -> str:
    """Returns how a setting is given to a command with these parameters: `--lr` or `--set train.patience=VALUE`."""
    word = SETTINGS[name].keyword
    is_option = COMMON.get(word) == name and word in declared
    return f"--{word}".replace("_", "-") if is_option else f"--set {name}=VALUE"
