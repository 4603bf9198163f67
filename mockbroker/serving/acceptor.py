"""Accepts connections, and closes those for which the process has too few descriptors.

The loops' own servers cannot refuse: at the limit of open files asyncio logs a traceback and does
not accept for a second, and uvloop closes connections without telling anybody. Here some
descriptors are left, so that a connection can always be accepted and, past the limit, closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

from mockbroker.serving.tls_alerts import ACCEPTED, handshake_problem, send_alerts

__all__ = [
    "BACKLOG",
    "SPARE_FOR_CLIENTS",
    "SPARE_FOR_CONTROL",
    "Acceptor",
    "bound_sockets",
    "file_limit",
    "room",
]

BACKLOG: Final = 1024
"""Connections that may wait to be accepted. Beyond it the system drops a client's SYN, and the
client retries after a second; asyncio's default of 100 is too low for a connection storm."""
SPARE_FOR_CLIENTS: Final = 64
"""Descriptors that connections to brokers and proxies leave: the control port's, and files."""
SPARE_FOR_CONTROL: Final = 16
"""Descriptors that connections to a control port leave."""

_AT_ONCE: Final = 16
"""Connections that are accepted before other work of the loop has its turn."""
_PAUSE_SECONDS: Final = 0.1
_OUT_OF_RESOURCES: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
)  # fmt: skip


def file_limit() -> int | None:
    """The number of descriptors that the process may have; None without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def room(spare: int = SPARE_FOR_CLIENTS) -> int | None:
    """How many connections the process can accept now; None without a limit. Raises OSError if it
    can open nothing."""
    limit = file_limit()
    if limit is None:
        return None
    with socket.socket() as lowest_free:
        return max(0, _highest(limit, spare) - lowest_free.fileno())


def _highest(limit: int, spare: int) -> int:
    """The number from which on a descriptor leaves too few. A small limit leaves fewer."""
    return limit - min(spare, limit // 4)


async def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Bind each address of a host, which is "" for every address, and do not listen. Raises
    OSError."""
    try:
        found = await _addresses(host, port)
    except socket.gaierror as error:
        raise OSError(f"cannot listen on {host!r}: {error.strerror}") from None
    made: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            made.append(_bound(family, kind, protocol, address))
    except OSError:
        for each in made:
            each.close()
        raise
    return made


async def _addresses(host: str, port: int) -> list[Any]:
    """Resolve a host to listen on. An address or "" needs no thread, which a name does."""
    try:
        return socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE | socket.AI_NUMERICHOST,
        )  # fmt: skip
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )


def _bound(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    try:
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        if error.errno in _OUT_OF_RESOURCES:
            raise OSError(
                error.errno,
                f"cannot listen on {address[0]!r}: out of file descriptors (ulimit -n?)",
            ) from None
        raise
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        text = (error.strerror or str(error)).lower()
        raise OSError(
            error.errno, f"error while attempting to bind on address {address!r}: {text}"
        ) from None
    return made


class Acceptor:
    """Accepts the connections of bound sockets, which it closes.

    A descriptor's number is the lowest that is free, so that the number of an accepted socket says
    how many are open in the process. Connections that leave fewer than ``spare()`` are closed, and
    ``refuse`` is called with the peer, the event ``over-limit`` and the reason. If a TLS handshake
    fails the event is ``tls-failed``.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        refuse: Callable[[str, str, str], None],
        spare: Callable[[], int] = lambda: SPARE_FOR_CLIENTS,
        tls: ssl.SSLContext | None = None,
        handshake_seconds: float | None = None,
    ) -> None:
        self._sockets = sockets
        self._make_protocol = make_protocol
        self._refuse = refuse
        self._spare = spare
        self._tls = tls
        if tls is not None:
            send_alerts(tls)
        self._handshake_seconds = handshake_seconds if tls is not None else None
        self._accepting: list[asyncio.Task[None]] = []
        self._connecting: set[asyncio.Task[None]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}

    @property
    def port(self) -> int:
        """The port of the first socket."""
        port: int = self._sockets[0].getsockname()[1]
        return port

    def start(self) -> None:
        """Listen. Raises OSError."""
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            each.setblocking(False)
            each.listen(BACKLOG)
            try:
                loop.add_reader(each.fileno(), self._accept, each)
            except NotImplementedError:  # Windows' own loop
                self._accepting.append(loop.create_task(self._accept_one_by_one(each)))

    async def close(self) -> None:
        """Stop listening, and drop the connections whose TLS handshake is under way."""
        loop = asyncio.get_running_loop()
        tasks = [*self._accepting, *self._connecting]
        for pause in self._pauses.values():
            pause.cancel()
        for each in self._sockets:
            if not self._accepting:
                loop.remove_reader(each.fileno())
            each.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        try:
            for _ in range(_AT_ONCE):
                self._take(*listening.accept())
        except (BlockingIOError, InterruptedError, ConnectionError):
            pass  # all are accepted, or a client is gone already
        except OSError as error:
            self._refuse("", "over-limit", f"connections wait: {error.strerror}")
            loop = asyncio.get_running_loop()
            loop.remove_reader(listening.fileno())
            self._pauses[listening] = loop.call_later(
                _PAUSE_SECONDS, loop.add_reader, listening.fileno(), self._accept, listening
            )

    async def _accept_one_by_one(self, listening: socket.socket) -> None:
        while True:
            with contextlib.suppress(ConnectionError):
                self._take(*await asyncio.get_running_loop().sock_accept(listening))

    def _take(self, accepted: socket.socket, address: Any) -> None:
        limit = file_limit()
        peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else ""
        if limit is not None and accepted.fileno() >= _highest(limit, self._spare()):
            accepted.close()
            note = f"the process may have {limit} files open, and nearly has"
            self._refuse(peer, "over-limit", note)
            return
        accepted.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._connect(accepted, peer))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, accepted: socket.socket, peer: str) -> None:
        ACCEPTED.set(accepted)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make_protocol,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._handshake_seconds,
            )
        except ssl.SSLError as error:
            self._refuse(peer, "tls-failed", handshake_problem(error))
        except OSError:
            pass  # the peer is gone, or was silent for too long
