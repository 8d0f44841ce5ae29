"""Mutations of settings: as keywords, as a settings file and as options of the command line."""

from __future__ import annotations

import signal
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

import legnn
from benchmarks.campaign.cases import Case
from benchmarks.campaign.commands import command
from benchmarks.campaign.damage import YAML_RAW
from benchmarks.campaign.results import digest, frame_digest, result_digest
from legnn.config import PRESETS, SETTINGS, Settings
from legnn.config.fields import Setting

BASE: dict[str, Any] = {"train.epochs": 2, "model.hidden": 8, "preset": "simple"}
PATIENCE = 4.0
"""Seconds after which the user asks a run to stop, as by Ctrl-C: a million epochs are a valid setting."""

OBJECTS: list[Any] = [
    None, True, False, [], {}, [1], {"a": {"b": 1}}, (), b"x", object(), 1j, np.float32(1), np.int64(2), np.nan,
    np.array([1, 2]), torch.tensor(1.0), date(2026, 11, 16), range(3), float, lambda: 1, "", " ", "x", "ü🦊", "a\0b",
    "a\nb", "x" * 5_000, "1", "1.5", "nan", "1e400", "None", "[1]", "../..", float("nan"), float("inf"), -float("inf"),
    1e308, 1e-308, 5e-324, -1.5, 0, -1, 1, 2**31, 2**32, 2**62, 2**63, -(2**63), 10**30, 10**5_000, 0.5,
]  # fmt: skip
TEXTS = [
    "", " ", "x", "ü🦊", "a\nb", "x" * 5_000, "1", "1.5", "-1", "nan", "inf", "-inf", "1e400", "1e-400", "none", "None",
    "true", "[1]", "{a: 1}", "--help", "-", "../..", "0", "2147483648", "9223372036854775808", "9" * 5_000, "1_000",
    "٣", "0x10", "1,2", "auto", "all", "full", "\u202e",
]  # fmt: skip


def setting_case(random: Random, specimens: Path, place: Path) -> Case:
    """Up to three settings with any values, given in one of three ways."""
    given = dict(BASE)
    way = random.choice((_keywords, _file, _options))
    chosen = random.sample([one for one in SETTINGS.values() if one.name != "data.source"], random.choice((1, 1, 2, 3)))
    data, out = specimens / "tables" / "csv", place / "trained"
    values = {one.name: one for one in chosen}
    if any(one.section == "self_training" for one in chosen):
        given["self_training.as_train"] = True
    actions, about = way(random, given, values, data, out)
    if random.random() < 0.1:
        about += f", preset {given['preset']}"
    return Case(
        about=about, actions=actions, expected=lambda _: "another", guarded=data, outputs=[out], may_differ=True
    )


def _valid(random: Random, one: Setting) -> Any:
    """A value that the setting may have, often at the edge of its range."""
    if one.is_switch:
        return random.random() < 0.5
    if one.choices and (one.number is None or random.random() < 0.3):
        return random.choice(one.choices)
    if one.number is None:
        return random.choice(("label", "f0", "id", "3", "all", "1,2"))
    edges = [bound for bound in (one.least, one.above, one.most, one.below) if bound is not None]
    value = random.choice([*edges, one.default, 1, 2, 7, 2**31, 1e-9])
    return one.number(value) if isinstance(value, int | float) else value


def _keywords(
    random: Random, given: dict[str, Any], chosen: dict[str, Setting], data: Path, out: Path
) -> tuple[dict[str, Any], str]:
    for name, one in chosen.items():
        given[name] = random.choice(OBJECTS) if random.random() < 0.6 else _valid(random, one)
    if random.random() < 0.1:
        given["preset"] = random.choice([*PRESETS, *OBJECTS])
    if random.random() < 0.05:
        given[random.choice(("unknown", "Hidden", "lr_", "_"))] = 1
    return {"train": lambda: _train(data, out, given)}, f"keywords {_shown(given)}"


def _file(
    random: Random, given: dict[str, Any], chosen: dict[str, Setting], data: Path, out: Path
) -> tuple[dict[str, Any], str]:
    lines = [f"{name}: {_yaml(value)}" for name, value in given.items() if name in SETTINGS and name not in chosen]
    for name, one in chosen.items():
        value = random.choice([*YAML_RAW.values(), *map(_yaml, TEXTS), "~", "{}", "[]", "{a: {b: 1}}"])
        lines.append(f"{name}: {value if random.random() < 0.6 else _yaml(_valid(random, one))}")
    text = "\n".join(["preset: simple", *lines, ""])
    path = out.with_name("settings.yaml")
    path.write_text(text, encoding="utf-8")
    if random.random() < 0.5:
        return {"train": lambda: _train(data, out, Settings.from_yaml(path))}, f"file {text!r}"[:200]
    return {"legnn train": lambda: _command(["train", data, "--config", path, "--out", out])}, f"file {text!r}"[:200]


def _options(
    random: Random, given: dict[str, Any], chosen: dict[str, Setting], data: Path, out: Path
) -> tuple[dict[str, Any], str]:
    words = ["train", data, "--out", out, "--preset", "simple"]
    for name, value in given.items():
        if name in SETTINGS and name not in chosen:
            words += ["--set", f"{name}={value}"]
    for name, one in chosen.items():
        value = random.choice(TEXTS) if random.random() < 0.6 else str(_valid(random, one))
        flag = f"--{one.keyword}".replace("_", "-")
        words += [flag, value] if one.is_common and random.random() < 0.5 else ["--set", f"{name}={value}"]
    return {"legnn train": lambda: _command(words)}, f"options {' '.join(map(str, words[6:]))!r}"[:200]


def _yaml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) and "\n" not in value else repr(value)


def _shown(given: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={repr(value)[:30] if not _is_long(value) else 'a long number'}" for name, value in given.items()
    )


def _is_long(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() > 1_000


def _train(data: Path, out: Path, settings: Settings | dict[str, Any]) -> str:
    asked: list[int] = []
    with _after(PATIENCE, lambda: asked.append(1)):
        run = legnn.train(data, settings=settings, out=out, should_stop=lambda: bool(asked))
    return digest(frame_digest(run.predictions), result_digest(run.result))


def _command(words: list[Any]) -> str:
    with _after(PATIENCE, lambda: signal.raise_signal(signal.SIGINT)):
        return command(words, Path.cwd())


class _after:  # noqa: N801 (a context, used like a function)
    """Within it a function is called once, after some seconds."""

    def __init__(self, seconds: float, call: Any) -> None:
        self.seconds, self.call = seconds, call

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGALRM, lambda *_: self.call())
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)
