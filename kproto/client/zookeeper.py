"""A znode store on a real ZooKeeper server, through kazoo. No other module imports kazoo.

It implements ``kproto.znodes.ZnodeStore`` and does not interpret what is stored. Needs the extra
``zookeeper``. kazoo runs threads of its own and calls ``wakeup`` on one of them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeAlias

from kproto.errors import MissingExtraError
from kproto.znodes import requests
from kproto.znodes.errors import (
    BadArgumentsError,
    BadVersionError,
    ConnectionLossError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    ZnodeError,
)
from kproto.znodes.model import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    EventType,
    Operation,
    OperationResult,
    SetData,
    Stat,
    WatchedEvent,
    Znode,
)
from kproto.znodes.requests import ROOT, validate_path

if TYPE_CHECKING:
    from kazoo.client import KazooClient, TransactionRequest

__all__ = ["KazooStore", "Register", "Suspend"]

Register: TypeAlias = Callable[[Callable[[], None]], object]
Suspend: TypeAlias = Callable[[Register], bool]

_CLOSE_SECONDS = 2.0
_RECONNECT_SECONDS = 1.0
"""The longest pause between two attempts to connect, in seconds."""

_ERRORS: dict[int, type[ZnodeError]] = {
    kind.code: kind
    for kind in (
        BadArgumentsError,
        BadVersionError,
        ConnectionLossError,
        NoChildrenForEphemeralsError,
        NodeExistsError,
        NoNodeError,
        NotEmptyError,
        SessionExpiredError,
    )
}
_EVENTS = {
    "CREATED": EventType.NODE_CREATED,
    "DELETED": EventType.NODE_DELETED,
    "CHANGED": EventType.NODE_DATA_CHANGED,
    "CHILD": EventType.NODE_CHILDREN_CHANGED,
    "NONE": EventType.CONNECTION_LOST,
}


class KazooStore:
    """One session on the servers of ``connect``: "host:port[,host:port...][/chroot]", as Kafka's
    ``zookeeper.connect``. A missing chroot is created, as in Kafka.

    ``timeout`` (seconds) bounds connecting and each call. ``session_timeout`` (seconds) is
    requested from the server, which has limits of its own. Raises ``ConnectionLossError`` if no
    server responds in time.

    A broken connection is replaced in the background. The session survives if that happens in time,
    but its watches do not (``EventType.CONNECTION_LOST``). A session that expired stays expired
    until ``renew``.

    ``suspend`` is for callers that must not block. Given a function that registers a callback, it
    returns True once that callback was called, on any thread, or False at once if it cannot suspend
    its caller. A suspended call has no time-out, and requests lost with a broken connection are
    sent again, as in Kafka's ``retryRequestUntilConnected``, until the session ends.
    ``take_events`` then queries the server only after a write.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout: float = 6.0,
        timeout: float = 10.0,
        wakeup: Callable[[], None] | None = None,
        suspend: Suspend | None = None,
    ) -> None:
        hosts, slash, chroot = connect.partition("/")
        self._chroot = (slash + chroot).rstrip("/")
        if self._chroot:
            validate_path(self._chroot)
        self._timeout = timeout
        self._wakeup = wakeup
        self._events: deque[WatchedEvent] = deque()
        self._last_event: object = None
        self._suspend = suspend
        self._state_waiters: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._wrote = False
        self._ended = False
        self._closed = False
        self._client = _client(hosts, session_timeout)
        self._client.add_listener(self._state_changed)
        self._start(hosts)

    def _start(self, hosts: str) -> None:
        from kazoo.handlers.threading import KazooTimeoutError

        try:
            self._client.start(self._timeout)
        except KazooTimeoutError:
            self._client.close()
            detail = f"no ZooKeeper server at {hosts} responded within {self._timeout:g} s"
            raise ConnectionLossError("", detail) from None
        self._session = int(self._client.client_id[0])
        try:
            self._make_chroot()
        except ZnodeError:
            self.close()
            raise

    def _make_chroot(self) -> None:
        path = ""
        for name in self._chroot.split("/")[1:]:
            path += f"/{name}"
            if self._call(path, methodcaller("exists_async", path)) is None:
                with contextlib.suppress(NodeExistsError):  # another thread was quicker
                    self._call(path, methodcaller("create_async", path))

    @property
    def session_id(self) -> int:
        return self._session

    # ---- operations ----------------------------------------------------------------------------

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        requests.validate(Create(path, data, ephemeral, sequential))
        self._wrote = True
        made = self._call(
            path,
            lambda client: client.create_async(
                self._full(path), data, ephemeral=ephemeral, sequence=sequential
            ),
            requests.request_size(Create(self._full(path), data, ephemeral, sequential)),
        )
        return self._own(made)

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        requests.validate(SetData(path, data, version))
        self._wrote = True
        stat = self._call(
            path,
            lambda client: client.set_async(self._full(path), data, version),
            requests.request_size(SetData(self._full(path), data, version)),
        )
        return Stat._make(stat)

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        requests.validate(Delete(path, version))
        self._wrote = True
        self._call(path, lambda client: client.delete_async(self._full(path), version))

    def get(self, path: str, *, watch: bool = False) -> Znode:
        validate_path(path)
        data, stat = self._call(
            path, lambda client: client.get_async(self._full(path), self._watcher(watch))
        )
        return Znode(data or b"", Stat._make(stat))  # a znode without data is read as None

    def exists(self, path: str, *, watch: bool = False) -> Stat | None:
        validate_path(path)
        stat = self._call(
            path, lambda client: client.exists_async(self._full(path), self._watcher(watch))
        )
        return None if stat is None else Stat._make(stat)

    def children(self, path: str, *, watch: bool = False) -> list[str]:
        validate_path(path)
        names = self._call(
            path, lambda client: client.get_children_async(self._full(path), self._watcher(watch))
        )
        return sorted(names)

    def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        for index, operation in enumerate(operations):
            try:
                requests.validate(operation)
            except ZnodeError as error:
                raise error.in_multi(index) from None
        self._wrote = True

        def commit(client: KazooClient) -> Any:
            transaction = client.transaction()
            for operation in operations:
                self._add(transaction, operation)
            return transaction.commit_async()

        outcomes = self._call("", commit)
        self._raise_first(operations, outcomes)
        return [
            self._result(operation, outcome)
            for operation, outcome in zip(operations, outcomes, strict=True)
        ]

    def _add(self, transaction: TransactionRequest, operation: Operation) -> None:
        path = self._full(operation.path)
        match operation:
            case Create():
                transaction.create(
                    path,
                    operation.data,
                    ephemeral=operation.ephemeral,
                    sequence=operation.sequential,
                )
            case SetData():
                transaction.set_data(path, operation.data, operation.version)
            case Delete():
                transaction.delete(path, operation.version)
            case Check():
                transaction.check(path, operation.version)

    def _raise_first(self, operations: Sequence[Operation], outcomes: Sequence[Any]) -> None:
        """Raise the cause of a failed multi: every outcome is an error, but only one names the
        cause."""
        from kazoo.exceptions import RolledBackError, RuntimeInconsistency

        for index, outcome in enumerate(outcomes):
            if isinstance(outcome, Exception) and not isinstance(
                outcome, RolledBackError | RuntimeInconsistency
            ):
                raise _ours(outcome, operations[index].path).in_multi(index)

    def _result(self, operation: Operation, outcome: Any) -> OperationResult:
        match operation:
            case Create():
                return self._own(outcome)
            case SetData():
                return Stat._make(outcome)
        return None

    # ---- events --------------------------------------------------------------------------------

    def take_events(self) -> list[WatchedEvent]:
        self._catch_up()
        events = []
        while self._events:
            events.append(self._events.popleft())
        return events

    def _catch_up(self) -> None:
        """Wait until everything that the server has sent so far is in the queue.

        The server sends events before the response to any request that follows the change, and
        kazoo delivers events one by one in that order. So this sends a request and then queues
        behind the events.
        """
        if self._ended or (self._suspend is not None and not self._wrote):
            return
        from kazoo.protocol.states import Callback

        self._wrote = False
        try:
            self._call(ROOT, lambda client: client.exists_async(self._chroot or ROOT))
        except ZnodeError:
            return  # the connection is lost, and the server's events with it
        handler = self._client.handler
        self._wait(lambda done: handler.dispatch_callback(Callback("watch", done, ())))

    def _watcher(self, watch: bool) -> Callable[[Any], None] | None:
        return self._fired if watch else None

    def _fired(self, event: Any) -> None:
        """Called by kazoo, twice for one event if both a data and a child watch were set."""
        if event is self._last_event:
            return
        self._last_event = event
        kind = _EVENTS.get(event.type)
        if kind is not None and not self._ended:
            path = "" if kind is EventType.CONNECTION_LOST else self._own(event.path)
            self._tell(WatchedEvent(kind, path))

    def _state_changed(self, state: str) -> None:
        """Called by kazoo before it acts on the change."""
        with self._lock:
            ends = state == "LOST" and not self._ended
            if ends:
                # kazoo continues with a new session, without the ephemeral znodes of the old one.
                self._ended = True
            waiters, self._state_waiters = self._state_waiters, []
        if ends:
            self._tell(WatchedEvent(EventType.SESSION_EXPIRED, ""))
        for done in waiters:
            done()

    def _tell(self, event: WatchedEvent) -> None:
        self._events.append(event)
        if self._wakeup:
            self._wakeup()

    # ---- the session ---------------------------------------------------------------------------

    @property
    def expired(self) -> bool:
        """Whether the session expired and no other has begun since. ``close`` does not count."""
        return self._ended and not self._closed

    def renew(self) -> None:
        """Continue with the session that kazoo begins after an expired one."""
        while True:
            with self._lock:
                if self._closed:
                    raise SessionExpiredError("")
                if self._client.connected:
                    self._session = int(self._client.client_id[0])
                    self._ended = False
                    self._events.clear()
                    return
            if not self._wait(self._on_state_change):
                detail = f"no new session within {self._timeout:g} s"
                raise ConnectionLossError("", detail)

    def close(self) -> None:
        """Close the session. Returns within ``timeout`` even if the server hangs, which then ends
        the session itself."""
        self._closed = True
        closing = threading.Thread(target=self._close, name="zookeeper-close", daemon=True)
        closing.start()
        closing.join(min(self._timeout, _CLOSE_SECONDS))
        self._state_changed("LOST")

    def _close(self) -> None:
        from kazoo.exceptions import WriterNotClosedException

        try:
            self._client.stop()
        except WriterNotClosedException:
            return  # the server hangs
        self._client.close()

    def _call(self, path: str, ask: Callable[[KazooClient], Any], size: int = 0) -> Any:
        """Send a request and wait for its response; kazoo's errors become ours. ``size`` is the
        size of the request, since the server breaks the connection on a request that is too large,
        each time that it is sent."""
        from kazoo.exceptions import ConnectionLoss, KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        while True:
            if self._ended or self._closed:
                raise SessionExpiredError(path)
            request = ask(self._client)
            suspended = self._suspended(partial(_call_back, request))
            try:
                return request.get(timeout=self._timeout)
            except KazooTimeoutError:
                raise ConnectionLossError(path, f"no response within {self._timeout:g} s") from None
            except ConnectionLoss as error:
                if not suspended:
                    raise _ours(error, path) from error
                requests.check_size(path, size, requests.MAX_REQUEST_BYTES)
                self._until_connected()
            except KazooException as error:
                raise _ours(error, path) from error

    def _until_connected(self) -> None:
        """Wait until connected, or until the session has ended."""
        while not self._client.connected and not self._ended:
            if not self._wait(self._on_state_change):
                return

    def _on_state_change(self, done: Callable[[], None]) -> None:
        with self._lock:
            self._state_waiters.append(done)
        if self._client.connected or self._closed:
            done()  # connected before the callback was registered

    def _suspended(self, register: Register) -> bool:
        return self._suspend is not None and self._suspend(register)

    def _wait(self, register: Register) -> bool:
        """Wait until the registered callback is called. Returns False after the time-out."""
        if self._suspended(register):
            return True
        reached = threading.Event()
        register(reached.set)
        return reached.wait(self._timeout)

    def _full(self, path: str) -> str:
        return self._chroot + path if path != ROOT else self._chroot or ROOT

    def _own(self, path: str) -> str:
        """Return a path of the server relative to the chroot."""
        return path[len(self._chroot) :] or ROOT


def _call_back(request: Any, done: Callable[[], None]) -> None:
    """Called when kazoo has a response to the request."""
    request.rawlink(lambda _: done())


def _client(hosts: str, session_timeout: float) -> KazooClient:
    try:
        from kazoo.client import KazooClient
    except ImportError:
        raise MissingExtraError("a ZooKeeper server needs kazoo", extra="mock") from None
    logger = logging.getLogger(__name__)
    retry = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": _RECONNECT_SECONDS}
    return KazooClient(hosts, timeout=session_timeout, connection_retry=retry, logger=logger)


def _ours(error: Exception, path: str) -> ZnodeError:
    """Return our error with the same code. A code without a class keeps its code and name."""
    from kazoo.exceptions import ConnectionClosedError

    if isinstance(error, ConnectionClosedError):
        return SessionExpiredError(path)
    code = getattr(error, "code", None)
    kind = _ERRORS.get(code) if code is not None else None
    if kind is not None:
        return kind(path)
    return ZnodeError(path, str(error), code=code, name=type(error).__name__.removesuffix("Error"))
