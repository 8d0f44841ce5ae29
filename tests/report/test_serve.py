"""A run in progress, watched in a browser."""

import json
from http.client import HTTPConnection
from threading import Thread

import pytest

import legnn
from legnn.report.serve import HOST, Watch, make_server


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "watched"
    return legnn.train("digits", epochs=3, hidden=8, preset="simple", device="cpu", out=place)


@pytest.fixture
def server(run):
    with make_server(Watch(run.folder), 0) as found:
        Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def ask(server, path, **headers):
    connection = HTTPConnection(HOST, server.server_port, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_new_epochs_are_answered_once(server):
    status, text = ask(server, "/progress.json?after=1")
    found = json.loads(text)
    assert status == 200
    assert found["curve"]["values"]["epoch"] == [2, 3]
    assert found["is_finished"] is True


def test_another_site_cannot_ask(server):
    assert ask(server, "/progress.json", Host="example.org")[0] == 403


def test_no_other_file_is_served(server):
    assert ask(server, "/../settings.yaml")[0] == 404


def test_a_run_in_progress_has_a_page_of_its_curves(run, server):
    (run.folder / "result.json").rename(run.folder / "kept.json")
    try:
        status, text = ask(server, "/")
    finally:
        (run.folder / "kept.json").rename(run.folder / "result.json")
    assert status == 200
    assert '"max_epochs":3' in text
    assert '"map":' not in text


def test_a_port_in_use_is_said(server, run):
    with pytest.raises(legnn.InputError, match="cannot be used"):
        make_server(Watch(run.folder), server.server_port)
