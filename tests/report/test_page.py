"""The file of a page."""

import json
import re
from importlib.resources import files

import pytest
from tests.graphs import small_data, table_folder
from tests.report.pages import CLASSES, made_up_page, made_up_run
from typer.testing import CliRunner

import legnn
from legnn.cli import make_app
from legnn.report.page import SCRIPTS, to_html
from legnn.report.payload import to_json


def test_a_page_names_no_other_place():
    page = to_html(made_up_page(made_up_run()))
    addresses = set(re.findall(r"https?://[^\s\"'<>`]+", page))
    # the namespace of SVG is a name, and nothing is loaded from it
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:link|img|iframe)|\bsrc=|@import", page)


def test_a_name_in_the_data_cannot_end_the_script_element():
    page = to_html(made_up_page(made_up_run()))
    assert "<script>window.leaked" not in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(data)["runs"][0]["classes"] == CLASSES


def test_a_title_is_escaped():
    assert "<h1>&lt;b&gt;data&lt;/b&gt;</h1>" in to_html(made_up_page(made_up_run(data="<b>data</b>")))


@pytest.mark.parametrize("text", ["</script>", "<!--", "\u2028", "a&b", '"', "\\"])
def test_any_text_survives_the_script_element(text):
    written = to_json({"name": text})
    assert not re.search("[<>&\u2028]", written)
    assert json.loads(written) == {"name": text}


def test_what_is_no_number_is_null():
    assert to_json([float("nan"), float("inf"), 1.5, None, True]) == "[null,null,1.5,null,true]"


def test_scripts_use_no_markup_from_strings():
    for name in SCRIPTS:
        script = (files("legnn.report") / "assets" / f"{name}.js").read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", script), name


def test_a_report_goes_to_an_html_file(tmp_path):
    with pytest.raises(legnn.InputError, match=r"a report goes to a \.html file"):
        legnn.write_report("runs/any", tmp_path / "page.pdf")


def test_the_command_writes_a_page(tmp_path):
    data = table_folder(tmp_path / "data", small_data())
    run = legnn.train(data, epochs=2, hidden=8, preset="simple", device="cpu", out=tmp_path / "run")
    out = tmp_path / "page.html"
    done = CliRunner().invoke(make_app(), ["report", str(run.folder), "--out", str(out), "--nodes", "n3, n5"])
    assert done.exit_code == 0, done.output
    data = re.search(r'id="data">(.*?)</script>', out.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert [one["id"] for one in json.loads(data)["runs"][0]["sections"]["node"]] == ["n3", "n5"]


def test_the_command_has_a_section_of_labels_only_if_they_are_given(tmp_path):
    data = table_folder(tmp_path / "data", small_data())
    run = legnn.train(data, epochs=2, hidden=8, preset="simple", device="cpu", out=tmp_path / "run")
    checked, out = tmp_path / "labels.csv", tmp_path / "page.html"
    legnn.check_labels(run, folds=2, repeats=1).table.to_csv(checked, index=False)
    for more, is_there in (([], False), (["--labels", str(checked)], True)):
        done = CliRunner().invoke(make_app(), ["report", str(run.folder), "--out", str(out), "--nodes", "n3", *more])
        assert done.exit_code == 0, done.output
        assert ('"labels":"Labels that look wrong"' in out.read_text(encoding="utf-8")) == is_there
    done = CliRunner().invoke(make_app(), ["report", str(run.folder), "--serve", "--labels", str(checked)])
    assert isinstance(done.exception, legnn.InputError)


def test_every_asset_is_in_the_page():
    assets = {asset.name for asset in (files("legnn.report") / "assets").iterdir()}
    assert assets == {*(f"{name}.js" for name in SCRIPTS), "page.css", "page.html"}
