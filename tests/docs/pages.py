"""The pages of the documentation, and the blocks of code in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

BLOCK = re.compile(r"^(?:<!-- ([^\n]*) -->\n)?```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of code."""

    mark: str
    """What the comment in the line before it says, empty without one."""
    language: str
    code: str
    line: int
    """Of the page, where its code begins."""

    @property
    def is_run(self) -> bool:
        """Whether the tests run it: it is neither too long for them nor the command that runs them."""
        return not self.mark.startswith("long") and self.mark != "test command"

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, continued ones joined."""
        return [line for line in self.code.replace("\\\n", " ").splitlines() if line.strip()]


def blocks(page: Path) -> list[Block]:
    """Returns the shell and Python blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1] or "", found[2], found[3], text.count("\n", 0, found.start(3)) + 1)
        for found in BLOCK.finditer(text)
    ]


def name(page: Path) -> str:
    """Returns the path of a page in the repository."""
    return page.relative_to(ROOT).as_posix()
