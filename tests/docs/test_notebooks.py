"""The notebooks run from their first cell to the last, and are kept without outputs."""

import json

import pytest
from tests.docs.pages import ROOT

EPOCHS = 20
SHORT = "\n".join(
    [
        f"import sys; sys.path.insert(0, {str(ROOT)!r})",
        "from tests.docs.short import shorten_searches, shorten_trainings",
        f"shorten_searches(); shorten_trainings({EPOCHS})",
    ]
)
"""Runs before the first cell: searches try two candidates, and models are narrow and end early."""
NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="needs legnn[docs]")
    client = pytest.importorskip("nbclient", reason="needs legnn[docs]").NotebookClient
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SHORT))
    client(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)
