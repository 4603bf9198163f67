"""A ZooKeeper server's data as a value: sessions, znodes, watches, and the log of every write.

There is no I/O and no clock: ``now_ms`` is an argument, and sessions end explicitly. Random
sequences of operations were compared with a real ZooKeeper 3.8.4; results, errors, stats and watch
events agree. Zxids agree too: every write request takes the next one, even if it fails, and so do
the opening and the end of a session. Deliberately left out:

* ACLs, quotas, TTL and container nodes, persistent watches; everything is permitted.
* ``/zookeeper``: the root starts empty, as a chroot does, its cversion at 0.
* Expiry of silent sessions: ``end_session`` ends a session, whatever the reason.

The ephemeral znodes of a session that ends are deleted in the order of their paths. A server's
order is that of a Java hash set, on which nothing should rely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kproto.znodes import paths, requests
from kproto.znodes.errors import NoNodeError, SessionExpiredError, ZnodeError
from kproto.znodes.model import (
    Delete,
    Operation,
    OperationResult,
    Stat,
    WatchedEvent,
    Znode,
)
from kproto.znodes.requests import MAX_REQUEST_BYTES
from kproto.znodes.transaction import Node, Transaction, ZnodeWrite, node_at
from kproto.znodes.watches import Watches

__all__ = ["ZnodeTree"]


class ZnodeTree:
    """Znodes from the root down, shared by any number of sessions.

    ``now_ms`` is the time at which the root is created. ``max_request_bytes`` is
    ``jute.maxbuffer``. ``zxid`` is the last transaction before any of these; a server that has been
    running for long has its epoch in the upper 32 bits. ``on_write`` is called with each write as
    it is logged, after all writes of its transaction were applied and before any watch event is
    available.
    """

    def __init__(
        self,
        *,
        now_ms: int = 0,
        zxid: int = 0,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        on_write: Callable[[ZnodeWrite], None] | None = None,
    ) -> None:
        self._nodes = {paths.ROOT: Node(b"", 0, 0, 0, 0, now_ms, now_ms)}
        self._names: dict[str, set[str]] = {paths.ROOT: set()}
        self._limit = max_request_bytes
        self._on_write = on_write
        self._watches = Watches()
        self._sessions: dict[int, Callable[[], None] | None] = {}
        self._last_session = 0
        self._zxid = zxid
        self._log: list[ZnodeWrite] = []

    # ---- sessions ------------------------------------------------------------------------------

    def open_session(self, *, wakeup: Callable[[], None] | None = None) -> int:
        """Open a session and return its id. ``wakeup`` is called whenever the session has new
        events; it may call the tree, which is consistent by then."""
        self._zxid += 1
        self._last_session += 1
        self._sessions[self._last_session] = wakeup
        self._watches.open(self._last_session)
        return self._last_session

    def end_session(self, session: int, *, now_ms: int) -> None:
        """Close or expire a session. Its ephemeral znodes are deleted in one transaction. A second
        call has no effect."""
        if session not in self._sessions:
            return
        wakeup = self._sessions.pop(session)
        self._watches.end(session)
        transaction = self._begin(session, now_ms)
        owned = sorted(path for path, node in self._nodes.items() if node.owner == session)
        for path in owned:
            transaction.apply(Delete(path))
        self._commit(transaction)
        if wakeup:
            wakeup()

    def is_open(self, session: int) -> bool:
        return session in self._sessions

    def take_events(self, session: int) -> list[WatchedEvent]:
        """Return the watch events since the last call, oldest first, also for a session that
        ended."""
        return self._watches.take(session)

    # ---- reading -------------------------------------------------------------------------------

    def get(self, session: int, path: str, *, watch: bool = False) -> Znode:
        """Return data and stat. A watch is set only if the znode exists."""
        node = self._read(session, path)
        if watch:
            self._watches.watch_data(session, path)
        return Znode(node.data, node.stat)

    def exists(self, session: int, path: str, *, watch: bool = False) -> Stat | None:
        """Return the stat, or None. The watch is set either way."""
        try:
            stat = self._read(session, path).stat
        except NoNodeError:
            stat = None
        if watch:
            self._watches.watch_data(session, path)
        return stat

    def children(self, session: int, path: str, *, watch: bool = False) -> list[str]:
        """Return the names of the children, sorted. A watch is set only if the znode exists."""
        self._read(session, path)
        if watch:
            self._watches.watch_children(session, path)
        return sorted(self._names[path])

    def _read(self, session: int, path: str) -> Node:
        paths.validate(path)
        self._check_session(session, path)
        return node_at(self._nodes, path)

    # ---- writing -------------------------------------------------------------------------------

    @property
    def zxid(self) -> int:
        """The zxid of the last transaction."""
        return self._zxid

    @property
    def log(self) -> Sequence[ZnodeWrite]:
        """All writes so far, oldest first."""
        return tuple(self._log)

    def write(self, session: int, operation: Operation, *, now_ms: int) -> OperationResult:
        """Apply one operation as a request of its own."""
        requests.validate(operation)
        self._check_session(session, operation.path)
        requests.check_size(operation.path, requests.request_size(operation), self._limit)
        transaction = self._begin(session, now_ms)
        result = transaction.apply(operation)
        self._commit(transaction)
        return result

    def multi(
        self, session: int, operations: Sequence[Operation], *, now_ms: int
    ) -> list[OperationResult]:
        """Apply all operations under one zxid, or none; then the first that failed has the
        error."""
        for index, operation in enumerate(operations):
            with _Naming(index):
                requests.validate(operation)
        self._check_session(session, "")
        requests.check_size("", requests.multi_size(operations), self._limit)
        transaction = self._begin(session, now_ms)
        results = []
        try:
            for index, operation in enumerate(operations):
                with _Naming(index):
                    results.append(transaction.apply(operation))
        except ZnodeError:
            transaction.roll_back()
            raise
        self._commit(transaction)
        return results

    def _begin(self, session: int, now_ms: int) -> Transaction:
        self._zxid += 1
        return Transaction(self._nodes, zxid=self._zxid, session=session, now_ms=now_ms)

    def _commit(self, transaction: Transaction) -> None:
        notified: set[int] = set()
        for write in transaction.writes:
            self._index(write)
            self._log.append(write)
            if self._on_write:
                self._on_write(write)
        for write in transaction.writes:
            notified |= self._watches.fire(write)
        for session in sorted(notified):
            wakeup = self._sessions.get(session)
            if wakeup:
                wakeup()

    def _index(self, write: ZnodeWrite) -> None:
        """Index the names of each parent's children, so that listing them needs no search."""
        parent, _, name = write.path.rpartition("/")
        if write.op == "create":
            self._names[parent or paths.ROOT].add(name)
            self._names[write.path] = set()
        elif write.op == "delete":
            self._names[parent or paths.ROOT].discard(name)
            del self._names[write.path]

    def _check_session(self, session: int, path: str) -> None:
        if session not in self._sessions:
            raise SessionExpiredError(path)


class _Naming:
    """Adds the index of the operation in a multi to errors raised inside."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ZnodeError):
            raise error.in_multi(self._index) from None
