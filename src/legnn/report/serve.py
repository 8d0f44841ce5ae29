"""A server on this machine: the page of a run in progress, which is watched, or of a finished run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from legnn import __version__
from legnn.errors import InputError, LegnnError
from legnn.report.collecting import collect
from legnn.report.page import to_html
from legnn.report.payload import DataFacts, Page, Progress, RunPayload, to_json
from legnn.report.sections import SECTIONS, curve_of
from legnn.runs import RunFolder
from legnn.runs.run import describe_settings

HOST = "127.0.0.1"
PORT = 8800


class Watch:
    """A run folder, read again whenever a page asks."""

    def __init__(self, folder: Path, *, device: str = "auto") -> None:
        self.run, self.device = RunFolder.open(folder), device
        self._lock = Lock()

    def progress(self, after: int = 0) -> Progress:
        """Returns the epochs after the first `after` ones, and whether the run is finished."""
        run = self.run
        return Progress(curve=curve_of(run, after), is_finished=run.is_finished, max_epochs=run.settings.train.epochs)

    def live_page(self) -> str:
        """Returns the page that asks for `progress`."""
        card, progress = self.run.card, self.progress()
        payload = RunPayload(
            name=self.run.path.resolve().name,
            title=describe_settings(self.run.settings),
            kind="run",
            data=DataFacts(name=card.name, nodes=card.nodes, classes=len(card.classes)),
            classes=[str(name) for name in card.classes],
            nodes=None,
            sections={"curves": [progress.curve]},
        )
        sections = {name: SECTIONS[name].title for name in ("overview", "curves")}
        return to_html(
            Page(
                version=__version__,
                sections=sections,
                runs=[payload],
                progress=progress,
            )
        )

    def report_page(self) -> str:
        """Returns the whole report of a finished run, computed once."""
        # two pages that ask at the same time wait for one computation
        with self._lock:
            return self._report

    @cached_property
    def _report(self) -> str:
        return to_html(collect([self.run.path], device=self.device))


def make_server(watch: Watch, port: int = PORT) -> ThreadingHTTPServer:
    """Returns a server on this machine, which is not started; port 0 is any that is free."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answers the page, the whole report, and the epochs so far."""
            # another site that a browser has open must not read the run under a name of its own
            name = (self.headers.get("Host") or "").rsplit(":", 1)[0]
            if name not in (HOST, "localhost"):
                self.send_error(403)
                return
            address = urlsplit(self.path)
            answers: dict[str, Callable[[], tuple[str, str]]] = {
                "/": lambda: ("text/html", watch.report_page() if watch.run.is_finished else watch.live_page()),
                "/report": lambda: ("text/html", watch.report_page()),
                "/progress.json": lambda: ("application/json", self._progress(address.query)),
            }
            if address.path not in answers:
                self.send_error(404)
                return
            try:
                kind, text = answers[address.path]()
            except LegnnError as error:
                self.send_error(409, explain=str(error))
                return
            content = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def _progress(self, query: str) -> str:
            after = parse_qs(query).get("after", ["0"])[0]
            return to_json(watch.progress(int(after) if after.isdigit() else 0))

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing: a page asks every two seconds."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise InputError(f"port {port} cannot be used ({error.strerror}); give another `port`, or 0 for any") from None
