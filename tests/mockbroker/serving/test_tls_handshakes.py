"""A TLS handshake that fails: the client gets the alert that says why, and so does the journal."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from mockbroker import MockCluster

PEM = Path(__file__).parents[2] / "client" / "localhost.pem"
CONFIGS = {
    "listeners": "SSL://127.0.0.1:0",
    "inter.broker.listener.name": "SSL",
    "ssl.keystore.location": str(PEM),
    "ssl.truststore.location": str(PEM),
    "ssl.client.auth": "required",
}
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop
except ImportError:
    pass  # Windows has none
else:
    LOOPS["uvloop"] = uvloop.new_event_loop


def dial(address: str, kind: str) -> str:
    """What a client of this kind sees."""
    host, port = address.split(":")
    try:
        with socket.create_connection((host, int(port)), 10) as connection:
            if kind == "plaintext":
                connection.sendall(b"\0\0\0\x11\0\x12\0\0\0\0\0\7\0\7fixture")
                return "closed" if not connection.recv(100) else "answered"
            context = ssl.create_default_context(cafile=None if kind == "distrustful" else str(PEM))
            if kind == "older":
                context.maximum_version = ssl.TLSVersion.TLSv1_2
            if kind == "known":
                context.load_cert_chain(PEM)
            with context.wrap_socket(connection, server_hostname="localhost") as secured:
                secured.sendall(b"\0\0\0\x11\0\x12\0\0\0\0\0\7\0\7fixture")
                return "answered" if secured.recv(100) else "closed"
    except ssl.SSLError as error:
        return str(error.reason)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("kind", "seen", "note"),
    [
        ("known", "answered", ""),
        ("anonymous", "TLSV13_ALERT_CERTIFICATE_REQUIRED", "peer did not return a certificate"),
        ("older", "SSLV3_ALERT_HANDSHAKE_FAILURE", "peer did not return a certificate"),
        ("plaintext", "closed", "wrong version number"),
        ("distrustful", "CERTIFICATE_VERIFY_FAILED", "tlsv1 alert unknown ca"),
    ],
)
def test_why_a_handshake_failed(loop: str, kind: str, seen: str, note: str) -> None:
    async def run() -> None:
        async with MockCluster(1, broker_configs=CONFIGS) as mock:
            assert await asyncio.to_thread(dial, mock.bootstrap, kind) == seen
            async with asyncio.timeout(10):
                while not (events := [e for e in mock.journal.select() if e.direction == "event"]):
                    await asyncio.sleep(0.01)
        failed = [each.note for each in events if each.event == "tls-failed"]
        assert failed == ([f"the TLS handshake failed: {note}"] if note else [])

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(run())
