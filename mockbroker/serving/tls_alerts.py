"""Sends the TLS alert that says why a handshake failed, and words the reason.

asyncio drops the bytes that OpenSSL has left for the peer when a handshake fails, so that a client
without a certificate sees a connection that ends. Kafka's brokers send the alert, which clients
report: "certificate required", "unknown CA".
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from contextvars import ContextVar
from typing import Any, Final

__all__ = ["ACCEPTED", "handshake_problem", "send_alerts"]

ACCEPTED: Final[ContextVar[socket.socket | None]] = ContextVar("ACCEPTED", default=None)
"""The socket of the connection whose handshake begins in this context."""

_WAITS: Final = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Alerting(ssl.SSLObject):
    accepted: socket.socket | None = None
    outgoing: ssl.MemoryBIO | None = None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except _WAITS:
            raise
        except ssl.SSLError:
            if self.accepted is not None and self.outgoing is not None:
                with contextlib.suppress(OSError):  # the peer is gone
                    self.accepted.send(self.outgoing.read())
            raise
        self.accepted = self.outgoing = None


def send_alerts(context: ssl.SSLContext) -> None:
    """Let failed handshakes of a server's context send their alert to ``ACCEPTED``."""
    if context.sslobject_class is _Alerting:
        return
    context.sslobject_class = _Alerting
    wrap = context.wrap_bio

    def wrap_bio(
        incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *more: Any, **options: Any
    ) -> Any:
        made = wrap(incoming, outgoing, *more, **options)
        if isinstance(made, _Alerting):
            made.accepted, made.outgoing = ACCEPTED.get(), outgoing
        return made

    context.wrap_bio = wrap_bio  # type: ignore[method-assign]


def handshake_problem(error: ssl.SSLError) -> str:
    """One line that says why a handshake failed: ``peer did not return a certificate``."""
    reason = (error.reason or "unknown error").replace("_", " ").lower()
    detail = getattr(error, "verify_message", "")
    return f"the TLS handshake failed: {reason}{': ' if detail else ''}{detail}"
