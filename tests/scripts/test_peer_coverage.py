"""The comparison of coverage classes what peers do, and its table is true of those at hand."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

import kproto
from kproto.messages import ApiVersionsResponse, HeartbeatResponse
from scripts import peer_coverage
from scripts.peer_coverage import PEERS, RESULTS, Answer, measured, probe, spans, versions_in
from tests.support.toolchain import require, require_module

HEARTBEAT, API_VERSIONS = 12, 18
STORED = json.loads(RESULTS.read_text("utf-8"))["peers"]


def framed(rest: bytes) -> bytes:
    return (len(rest) + 4).to_bytes(4, "big") + (7).to_bytes(4, "big") + rest


@contextlib.contextmanager
def peer(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """A server that treats every connection in this way, and then closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield "127.0.0.1", server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(30)


@pytest.mark.parametrize(
    ("code", "expected"), [(0, Answer.SERVED), (25, Answer.SERVED), (35, Answer.UNSUPPORTED)]
)
def test_error_35_alone_is_unsupported(code: int, expected: Answer) -> None:
    response = HeartbeatResponse(error_code=code)
    data = kproto.encode_response(response, api_version=4, correlation_id=7)
    with peer(lambda connection: connection.sendall(data)) as address:
        assert probe(address, HEARTBEAT, 4) == expected


def test_api_versions_is_refused_in_version_0() -> None:
    response = ApiVersionsResponse(error_code=35)
    data = kproto.encode_response(response, api_version=0, correlation_id=7)
    with peer(lambda connection: connection.sendall(data)) as address:
        assert probe(address, API_VERSIONS, 5) == Answer.UNSUPPORTED


def test_other_bytes_are_malformed_and_a_closed_connection_is_closed() -> None:
    with peer(lambda connection: connection.sendall(framed(b"\0"))) as address:
        assert probe(address, HEARTBEAT, 4) == Answer.MALFORMED
    with peer(lambda _: None) as address:
        assert probe(address, HEARTBEAT, 4) == Answer.CLOSED


def test_silence_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_coverage, "PATIENCE", 0.2)
    ended = threading.Event()

    def wait(_: socket.socket) -> None:
        ended.wait(30)

    with peer(wait) as address:
        assert probe(address, HEARTBEAT, 4) == Answer.NONE
        ended.set()


def test_spans_hold_every_version() -> None:
    assert spans([0, 1, 2, 4, 6, 7]) == "0-2, 4, 6-7"
    assert versions_in("0-2, 4, 6-7") == {0, 1, 2, 4, 6, 7}
    assert (spans([]), versions_in("")) == ("", set())


@pytest.mark.slow
def test_the_table_is_true_of_mockbroker() -> None:
    name = "mockbroker"
    keys = [int(key) for key in STORED[name]["apis"]]
    assert measured(PEERS[name], keys) == STORED[name], "run python -m scripts.peer_coverage"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kfake", "librdkafka's mock"])
def test_the_table_is_true_of_peers(name: str) -> None:
    if name == "kfake":
        require("go")
    else:
        require_module("confluent_kafka")
    keys = [3, 10, 28, 34, 55, 68, 83]
    apis = STORED[name]["apis"]
    assert measured(PEERS[name], keys)["apis"] == {str(key): apis[str(key)] for key in keys}
