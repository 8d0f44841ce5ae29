"""A page on this machine alone: of a run in progress, which it watches, or of a finished one."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from legnn import __version__
from legnn.errors import InputError, LegnnError
from legnn.report.collecting import collect, curves_of
from legnn.report.encoding import plain
from legnn.report.page import to_html
from legnn.runs import RunFolder
from legnn.runs.run import describe_settings

HOST = "127.0.0.1"
PORT = 8800


class Watch:
    """A run folder, read again whenever a page asks."""

    def __init__(self, folder: Path, *, device: str = "auto") -> None:
        self.run, self.device = RunFolder.open(folder), device
        self._lock = Lock()

    def progress(self, after: int = 0) -> dict[str, Any]:
        """Returns the epochs after the first `after` ones, and whether the run is finished."""
        found = curves_of(self.run)
        new = {name: values[after:] if isinstance(values, list) else values for name, values in found.items()}
        most = self.run.settings.train.epochs
        return {"curves": new, "finished": self.run.is_finished, "most": most}

    def live_page(self) -> str:
        """Returns the page that asks for `progress`."""
        card, state = self.run.card, self.progress()
        run = {
            "name": self.run.path.resolve().name,
            "title": describe_settings(self.run.settings),
            "data": {"name": card.name, "nodes": card.nodes, "classes": len(card.classes)},
            "curves": [state["curves"]],
            "finished": state["finished"],
            "most": state["most"],
        }
        return to_html({"version": __version__, "live": True, "runs": [run], "differing": {}})

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
            return json.dumps(plain(watch.progress(int(after) if after.isdigit() else 0)))

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing: a page asks every two seconds."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise InputError(f"port {port} cannot be used ({error.strerror}); give another `port`, or 0 for any") from None
