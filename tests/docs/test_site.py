"""The site builds without warnings, needs no network, and leads to the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import ROOT

import legnn


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `mkdocs build --strict` builds it: a broken link, or any other warning, fails."""
    pytest.importorskip("material", reason="needs legnn[docs]")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.slow
def test_the_site_has_every_page_of_the_docs(site):
    for page in ROOT.glob("docs/**/*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix("")
        folder = place.parent if place.name == "index" else place
        assert (site / folder / "index.html").is_file(), page


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere_when_a_page_is_shown(site):
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=\"?(https?:)?//|<link[^>]*stylesheet[^>]*href=\"?(https?:)?//"
    )
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


@pytest.mark.slow
def test_source_files_named_in_the_method_are_linked(site):
    page = (site / "method" / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="\.\./(source/[\w/]+/)"><code>', page)
    assert len(links) > 10
    for target in links:
        assert (site / target / "index.html").is_file(), target


@pytest.mark.slow
def test_every_object_that_the_api_names_is_there(site):
    index = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    for page, anchor in re.findall(r"\((\w+)\.md#(legnn[\w.]+)\)", index):
        assert f'id="{anchor}"' in (site / "api" / page / "index.html").read_text(encoding="utf-8"), anchor


def test_every_public_name_is_in_the_api():
    named = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")))
    assert set(legnn.__all__) <= named
