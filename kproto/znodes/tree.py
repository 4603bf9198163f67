"""A ZooKeeper server's data as a value: sessions, znodes, watches, and the log of every write.

No I/O and no clock: ``now_ms`` is passed in, sessions end when told to. Held against a real
ZooKeeper 3.8.4 by random sequences of operations, which agree in results, errors, stats (zxids
included: every write request takes the next one, also one that fails, and so do the opening and the
end of a session) and watch events. What it leaves out on purpose:

* ACLs, quotas, TTL and container nodes, persistent watches; everyone may do everything.
* ``/zookeeper``: the root starts empty, as a chroot does, its cversion at 0.
* Expiry by silence: ``end_session`` ends a session, however it came to that.

The ephemeral znodes of a session that ends go in the order of their paths; a server's order is
that of a Java hash set, which nobody should rely on.
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

    ``now_ms`` is the clock at which the root is made. ``max_request_bytes`` is ``jute.maxbuffer``.
    ``zxid`` is that of the last transaction before any of these: the tree of a server that has run
    for long, whose zxids have its epoch in their upper 32 bits.
    ``on_write`` is told each write as it is logged, after all writes of its transaction were
    applied and before any watch event is handed out.
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
        """A new session's id. ``wakeup`` is called whenever it has events it did not have before;
        it may call the tree, which is in order by then."""
        self._zxid += 1
        self._last_session += 1
        self._sessions[self._last_session] = wakeup
        self._watches.open(self._last_session)
        return self._last_session

    def end_session(self, session: int, *, now_ms: int) -> None:
        """Close or expire it: its ephemeral znodes go, as one transaction. Twice is once."""
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
        """The watch events since the last call, oldest first, also of a session that ended."""
        return self._watches.take(session)

    # ---- reading -------------------------------------------------------------------------------

    def get(self, session: int, path: str, *, watch: bool = False) -> Znode:
        """Data and stat. A watch is left only where the znode is there."""
        node = self._read(session, path)
        if watch:
            self._watches.watch_data(session, path)
        return Znode(node.data, node.stat)

    def exists(self, session: int, path: str, *, watch: bool = False) -> Stat | None:
        """The stat, or None. A watch is left either way."""
        try:
            stat = self._read(session, path).stat
        except NoNodeError:
            stat = None
        if watch:
            self._watches.watch_data(session, path)
        return stat

    def children(self, session: int, path: str, *, watch: bool = False) -> list[str]:
        """The names of the children, sorted. A watch is left only where the znode is there."""
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
        """The last transaction's."""
        return self._zxid

    @property
    def log(self) -> Sequence[ZnodeWrite]:
        """Every write so far, oldest first."""
        return tuple(self._log)

    def write(self, session: int, operation: Operation, *, now_ms: int) -> OperationResult:
        """Do one operation: a request of its own."""
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
        """Do all of them under one zxid, or none: then the first that failed says why."""
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
        told: set[int] = set()
        for write in transaction.writes:
            self._index(write)
            self._log.append(write)
            if self._on_write:
                self._on_write(write)
        for write in transaction.writes:
            told |= self._watches.fire(write)
        for session in sorted(told):
            wakeup = self._sessions.get(session)
            if wakeup:
                wakeup()

    def _index(self, write: ZnodeWrite) -> None:
        """Keep the names of each parent's children, so that listing them is not a search."""
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
    """Errors raised inside say which operation of a multi they are about."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ZnodeError):
            raise error.in_multi(self._index) from None
