"""The lowest versions that `pyproject.toml` admits are those the tests are run with."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]


def requirements(extra: str | None = None) -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {requirement.name: requirement for requirement in map(Requirement, lines)}


def pinned(file: str) -> dict[str, Version]:
    lines = [line for line in (ROOT / file).read_text().splitlines() if line and not line.startswith("#")]
    return {name: Version(version) for name, version in (line.split("==") for line in lines)}


def test_the_lowest_versions_are_those_of_the_constraints():
    pins = pinned("constraints-lowest.txt")
    assert requirements().keys() <= pins.keys()
    everything = requirements() | requirements("test")
    for name, version in pins.items():
        [bound] = everything[name].specifier
        assert bound.operator == ">=", name
        assert Version(bound.version) == version, name


def test_the_versions_of_the_constraints_are_admitted():
    for name, version in pinned("constraints.txt").items():
        assert version in requirements()[name].specifier, name
