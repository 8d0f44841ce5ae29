"""A file is there whole or not at all, and without a network the user is told where to put it."""

import http.server
import threading
from pathlib import Path
from urllib.request import ProxyHandler, build_opener, install_opener

import pytest
from tests.network import no_network

from legnn.datasets import data_folder, load
from legnn.datasets.download import RemoteFile, fetch
from legnn.errors import InputError
from legnn.files import atomic_write


@pytest.fixture
def empty_folder(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("LEGNN_DATA", str(folder))
    return folder


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("cora", "planetoid/Cora/raw/ind.cora.x"),
        ("amazon-photo", "amazon/Photo/raw/amazon_electronics_photo.npz"),
        ("coauthor-cs", "coauthor/CS/raw/ms_academic_cs.npz"),
        ("actor", "actor/raw/out1_node_feature_label.txt"),
        ("tolokers", "heterophilous/tolokers/raw/tolokers.npz"),
        ("squirrel-filtered", "filtered/squirrel_filtered.npz"),
        ("ogbn-arxiv", "ogb/arxiv.zip"),
    ],
)
def test_without_a_network_the_error_says_names_the_url_and_the_place_of_the_file(name, place, empty_folder):
    with no_network(), pytest.raises(InputError) as error:
        load(name)
    message = str(error.value)
    assert "https://" in message
    assert "Connection refused" in message
    assert str(empty_folder / place) in message
    assert "\n" not in message


def test_a_download_lands_in_the_data_folder_and_is_not_repeated(tmp_path, empty_folder):
    published = tmp_path / "published.npz"
    published.write_bytes(b"content")
    file = RemoteFile("some/where/it.npz", published.as_uri())
    assert fetch(file).read_bytes() == b"content"
    published.unlink()
    assert fetch(file) == empty_folder / "some/where/it.npz"
    assert [path.name for path in (empty_folder / "some/where").iterdir()] == ["it.npz"]


class ClosesEarly(http.server.BaseHTTPRequestHandler):
    """Promises 100 bytes, sends 7 and closes the connection."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"content")

    def log_message(self, *_: object) -> None:
        pass


def test_a_download_cut_short_leaves_nothing(empty_folder):
    install_opener(build_opener(ProxyHandler({})))
    with http.server.HTTPServer(("127.0.0.1", 0), ClosesEarly) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(InputError, match="ended after 7 of 100 bytes"):
            fetch(RemoteFile("it.npz", f"http://127.0.0.1:{server.server_port}/it.npz"))
    install_opener(None)
    assert list(empty_folder.iterdir()) == []


def test_a_file_published_nowhere_must_be_put_there(empty_folder):
    with pytest.raises(InputError, match="is missing and is published nowhere; put it there"):
        fetch(RemoteFile("it.npz", None))


def test_a_write_that_fails_keeps_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def write_half():
        with atomic_write(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_data_folder_is_the_users_cache_unless_chosen(monkeypatch, tmp_path):
    monkeypatch.delenv("LEGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "legnn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder() == Path.home() / ".cache" / "legnn"
