"""Every command and every piece of Python in the documentation runs as it is written, but for its length.

A page's blocks run in their order, in a folder that has the user's graph (`my-graph`), the same graph with new rows
(`my-graph-grown`) and a run on it (`runs/mine`). Options and keywords of the blocks are changed where they decide how
long a block takes: `SHORT`. A block below `<!-- long: REASON -->` is not run.
"""

import ast
import shlex
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from tests.commands import run_command
from tests.docs.pages import PAGES, Block, blocks, name
from tests.graphs import small_data, table_folder

import legnn

EPOCHS, BUDGET = 3, "30s"
SHORT = {
    "train": {"epochs": EPOCHS},
    "LEGNNClassifier": {"epochs": EPOCHS},
    "check": {"set": f"train.epochs={EPOCHS}", "folds": 2, "repeats": 1},
    "auto": {"budget": "10m", "trials": 2, "epochs": EPOCHS},
    "AutoLEGNNClassifier": {"budget": BUDGET},
}
"""Options of a command, keywords of a function or class: added to a block, or in the place of what it says."""
WITH_CODE = [page for page in PAGES if any(block.is_run for block in blocks(page))]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the pages speak of: a graph, the same with new rows, and a run."""
    place = tmp_path_factory.mktemp("docs")
    first = table_folder(place / "my-graph", small_data(60))
    grown = shutil.copytree(first, place / "my-graph-grown")
    nodes, edges = pd.read_csv(grown / "nodes.csv"), pd.read_csv(grown / "edges.csv")
    new = nodes.tail(3).assign(id=["new-0", "new-1", "new-2"], label=None, split=None)
    pd.concat([nodes, new]).to_csv(grown / "nodes.csv", index=False)
    joined = pd.DataFrame({"source": new["id"].tolist(), "target": nodes["id"].head(3).tolist()})
    pd.concat([edges, joined]).to_csv(grown / "edges.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        legnn.train("my-graph", epochs=EPOCHS, as_train=True, backbone="sage", out="runs/mine")
    return place


@pytest.fixture
def here(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the workspace as the working folder."""
    place = shutil.copytree(workspace, tmp_path / "here")
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("MPLBACKEND", "agg")
    return place


def shorten_command(words: list[str]) -> list[str]:
    """Returns a command with the options of `SHORT`, and two seeds in the place of more."""
    command = words[1] if words[0] == "labels" else words[0]
    values = {f"--{option}": str(value) for option, value in SHORT.get(command, {}).items()}
    values |= {"--seeds": "2"} if "--seeds" in words else {}
    if "--resume" in words:
        return words
    for option, value in values.items():
        if option in words:
            words[words.index(option) + 1] = value
        else:
            words = [*words, option, value]
    return words


class ShortCalls(ast.NodeTransformer):
    """Gives calls the keywords of `SHORT`."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        values = SHORT.get(function, {})
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in values]
        node.keywords += [ast.keyword(arg, ast.Constant(value)) for arg, value in values.items()]
        return ast.fix_missing_locations(node)


def run_shell(block: Block, capsys: pytest.CaptureFixture) -> None:
    """Runs the lines of a shell block; `legnn` in this process, without the seconds that a new one takes to begin."""
    for line in block.commands:
        for command in line.split("&&"):
            words = shlex.split(command, comments=True)
            if not words:
                continue
            if words[0] != "legnn":
                subprocess.run(["bash", "-euc", command], check=True, timeout=60)
                continue
            assert run_command(*shorten_command(words[1:])) == 0, (command, capsys.readouterr().err)


def run_python(block: Block, names: dict, page: str) -> None:
    """Runs a Python block, whose names stay for the next."""
    tree = ShortCalls().visit(ast.parse(block.code, filename=page))
    ast.increment_lineno(tree, block.line - 1)
    exec(compile(tree, page, "exec"), names)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_the_code_of_a_page_runs(page, here, real_data, capsys):
    names: dict = {"__name__": "__main__"}
    if "--out runs/mine" in page.read_text(encoding="utf-8"):
        shutil.rmtree(here / "runs" / "mine")  # the page trains it itself
    for block in blocks(page):
        if not block.is_run:
            continue
        if block.language == "python":
            run_python(block, names, name(page))
        else:
            run_shell(block, capsys)


def test_a_block_that_is_not_run_says_why():
    for page in PAGES:
        for block in blocks(page):
            assert not block.mark.startswith("long") or len(block.mark) > len("long: "), f"{name(page)}:{block.line}"


def test_blocks_were_found():
    assert sum(block.is_run for page in PAGES for block in blocks(page)) > 20
