"""Hooks of the site's build: source files that pages name become pages, and so do notebooks.

A page names a file as `nn/gcn.py`; here that becomes a link to a page with its source.
Notebooks are kept without outputs: with `LEGNN_RUN_NOTEBOOKS=1` they are executed, and their outputs shown.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "legnn"
NAMED = re.compile(r"`((?:\w+/)+\w+\.py)`")
PRINTED = "```text\n"
OUTSIDE = re.compile(r"\]\((?:\.\./)+src/legnn/([\w/]+\.py)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for each source file that a page names, and for each notebook."""
    texts = [file.content_string for file in files.documentation_pages()]
    named = {found for text in texts for found in [*NAMED.findall(text), *OUTSIDE.findall(text)]}
    for path in sorted(named):
        if (SOURCE / path).is_file():
            files.append(File.generated(config, _page_of(path), content=_source_page(path)))
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        content = _notebook_page(Path(str(notebook.abs_src_path)))
        files.remove(notebook)
        files.append(File.generated(config, notebook.src_uri.removesuffix(".ipynb") + ".md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Makes links to source files and notebooks links to the pages they become."""
    start = posixpath.dirname(page.file.src_uri)
    markdown = OUTSIDE.sub(lambda found: f"]({posixpath.relpath(_page_of(found[1]), start)})", markdown)
    return re.sub(r"\]\(([\w/.-]+)\.ipynb\)", r"](\1.md)", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links the source files that a page names."""

    def link(match: re.Match[str]) -> str:
        source = files.get_file_from_path(_page_of(match[1]))
        return match[0] if source is None else f'<a href="{source.url_relative_to(page.file)}">{match[0]}</a>'

    return re.sub(r"<code>((?:\w+/)+\w+\.py)</code>", link, html)


def _page_of(path: str) -> str:
    return f"source/{path.removesuffix('.py')}.md"


def _source_page(path: str) -> str:
    code = (SOURCE / path).read_text(encoding="utf-8")
    return f'---\nsearch:\n  exclude: true\n---\n# legnn/{path}\n\n````python linenums="1"\n{code}````\n'


def _notebook_page(path: Path) -> str:
    """Returns a notebook as Markdown: its text, its code, and what it printed."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    if os.environ.get("LEGNN_RUN_NOTEBOOKS"):
        notebook = _executed(path)
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            # warnings speak of the machine that executed the notebook
            if output.get("name") != "stderr":
                _append(parts, _output(output))
    return "\n\n".join(parts) + f"\n\nThe notebook is `docs/notebooks/{path.name}` in the repository.\n"


def _append(parts: list[str], output: str) -> None:
    """Appends an output; lines that were printed one by one become one block."""
    if output.startswith(PRINTED) and parts[-1].startswith(PRINTED):
        parts[-1] = parts[-1].removesuffix("```") + output.removeprefix(PRINTED)
    else:
        parts.append(output)


def _executed(path: Path) -> Any:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as place:
        return NotebookClient(notebook, timeout=600, resources={"metadata": {"path": place}}).execute()


def _output(output: dict[str, Any]) -> str:
    """Returns an output as Markdown: a picture, a table as HTML, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    if "text/html" in data:
        return re.sub(r"\n\s*\n|<style.*?</style>", "\n", "".join(data["text/html"]), flags=re.DOTALL)
    return PRINTED + "".join(data.get("text/plain", output.get("text", ""))).rstrip() + "\n```"
