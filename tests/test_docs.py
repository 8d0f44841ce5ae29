"""Documentation names only what exists: files, headings, commands and their options."""

import re
import shlex
from itertools import chain
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT
from typer.main import get_command

from legnn.cli import make_app
from legnn.config import SETTINGS
from legnn.config.designs import DESIGNS

GUIDE = [ROOT / "README.md", *sorted(ROOT.glob("docs/guide/*.md")), *sorted(ROOT.glob("docs/start/*.md"))]
COMMANDS = get_command(make_app()).commands
NAMES = {*COMMANDS, *(f"{name} {sub}" for name in COMMANDS for sub in getattr(COMMANDS[name], "commands", {}))}

FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
INLINE = re.compile(r"`([^`]+)`")


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub makes them, and of the objects that it documents."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    objects = re.findall(r"^::: ([\w.]+)$", prose(page), re.MULTILINE)
    return {*objects} | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def options(command: str) -> set[str]:
    group, _, subcommand = command.partition(" ")
    parameters = (COMMANDS[group].commands[subcommand] if subcommand else COMMANDS[group]).params
    return set(chain.from_iterable([*parameter.opts, *parameter.secondary_opts] for parameter in parameters))


def shell_lines(page: Path) -> list[str]:
    """Returns the lines of a page's shell blocks, fenced or indented, with continued lines joined."""
    blocks = [block for language, block in FENCED.findall(page.read_text()) if language in ("bash", "sh")]
    indented = re.findall(r"^    (legnn .*)$", prose(page), re.MULTILINE)
    return "\n".join([*blocks, *indented]).replace("\\\n", " ").splitlines()


def legnn_commands(line: str) -> list[list[str]]:
    """Returns the arguments of each call of `legnn` in a line of shell."""
    calls = [re.search(r"(?:^|[/ ])legnn (.*)", part) for part in re.split(r"&&|;", line.split("#")[0])]
    return [shlex.split(call[1]) for call in calls if call]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if re.match(r"\w+:", link):
            continue
        target, _, anchor = link.partition("#")
        there = page.parent / target if target else page
        assert there.exists(), link
        assert not anchor or anchor in anchors(there), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_shell_examples_are_commands_that_parse(page):
    for line in shell_lines(page):
        for command, *arguments in legnn_commands(line):
            assert command in COMMANDS, line
            COMMANDS[command].make_context(command, list(arguments))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_prose_name_options_that_exist(page):
    for span in INLINE.findall(prose(page)):
        words = re.match(r"legnn (\w+)( \w+)?", span)
        if words:
            command = words[0].removeprefix("legnn ") if words[0].removeprefix("legnn ") in NAMES else words[1]
            assert command in NAMES, span
            assert set(re.findall(r"--[a-z][\w-]*", span)) <= options(command), span


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_settings_that_a_page_sets_exist(page):
    names = re.findall(r"--set ([\w.]+)=", page.read_text(encoding="utf-8"))
    assert set(names) - {"NAME"} <= set(SETTINGS)


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_in_prose_exist(page):
    known = set(chain.from_iterable(map(options, COMMANDS)))
    for span in INLINE.findall(prose(page)):
        if span.startswith("--"):
            assert set(re.findall(r"--[a-z][\w-]*", span)) <= known, span


def test_examples_were_found():
    assert sum(len(legnn_commands(line)) for page in PAGES for line in shell_lines(page)) > 5


def test_every_design_has_a_row_with_its_preset():
    page = (ROOT / "docs" / "designs.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| [^|]+ \| `(\w+)` \| [^|]+ \|", page, flags=re.MULTILINE)) == set(DESIGNS)
