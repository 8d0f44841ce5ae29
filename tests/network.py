"""Networks without a way out."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import ProxyHandler, build_opener, install_opener


@contextmanager
def through_proxy(port: int) -> Iterator[None]:
    """Sends what this process downloads through a proxy on this machine."""
    address = f"http://127.0.0.1:{port}"
    install_opener(build_opener(ProxyHandler({"http": address, "https": address})))
    try:
        yield
    finally:
        install_opener(None)


@contextmanager
def no_network() -> Iterator[None]:
    """Refuses all connections."""
    with socket.socket() as unused:
        # bound, so that nobody else has the port, and nobody listens
        unused.bind(("127.0.0.1", 0))
        with through_proxy(unused.getsockname()[1]):
            yield


@contextmanager
def no_requests() -> Iterator[None]:
    """Fails if anything was requested from the network."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        with through_proxy(server.getsockname()[1]):
            yield
        server.setblocking(False)
        try:
            server.accept()
        except BlockingIOError:
            return
    raise AssertionError("something was requested from the network")
