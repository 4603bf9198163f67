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

``EmbeddedStore`` is one session on a tree, in the form that ``store.ZnodeStore`` describes.
"""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

import msgspec

from kproto.znodes import requests
from kproto.znodes.errors import (
    BadVersionError,
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
from kproto.znodes.requests import MAX_REQUEST_BYTES, ROOT, parent_of

__all__ = ["EmbeddedStore", "ZnodeTree", "ZnodeWrite"]

_DATA_EVENTS = {
    "create": EventType.NODE_CREATED,
    "set": EventType.NODE_DATA_CHANGED,
    "delete": EventType.NODE_DELETED,
}


# ---- nodes, and transactions on them -------------------------------------------------------------


class ZnodeWrite(msgspec.Struct, frozen=True):
    """One change of one znode, as logged.

    ``op`` is "create", "set" or "delete". ``before`` and ``after`` are the data, None without
    a znode. Writes of one multi, and the deletions at a session's end, share a ``zxid``.
    ``session`` is the session that requested it, and ``at_ms`` the caller's time.
    """

    zxid: int
    at_ms: int
    session: int
    op: str
    path: str
    before: bytes | None
    after: bytes | None


class _Node(msgspec.Struct):
    """A znode. ``creates`` counts all children ever created: the next sequential child's number."""

    data: bytes
    owner: int
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int = 0
    creates: int = 0
    children: int = 0

    @property
    def stat(self) -> Stat:
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime=self.ctime,
            mtime=self.mtime,
            version=self.version,
            # Each creation counts, and each deletion: creates + (creates - children).
            cversion=2 * self.creates - self.children,
            aversion=0,
            ephemeral_owner=self.owner,
            data_length=len(self.data),
            num_children=self.children,
            pzxid=self.pzxid,
        )


def _node_at(nodes: dict[str, _Node], path: str, client_path: str | None = None) -> _Node:
    """Return the node at ``path``. The error names ``client_path`` if the client used that path."""
    node = nodes.get(path)
    if node is None:
        raise NoNodeError(client_path or path)
    return node


class _Transaction:
    """Applies operations to ``nodes`` at once, and can undo them all.

    It holds the rules of each operation and its effect on the metadata.
    """

    def __init__(self, nodes: dict[str, _Node], *, zxid: int, session: int, now_ms: int) -> None:
        self._nodes = nodes
        self._zxid = zxid
        self._session = session
        self._now_ms = now_ms
        self._saved: dict[str, _Node | None] = {}
        self.writes: list[ZnodeWrite] = []

    def apply(self, operation: Operation) -> OperationResult:
        """Apply one operation. If it raises, the nodes are as before the operation."""
        match operation:
            case Create():
                return self._create(operation)
            case SetData():
                return self._set(operation)
            case Delete():
                self._delete(operation)
            case Check():
                self._at_version(operation.path, operation.version)
        return None

    def roll_back(self) -> None:
        """Undo all operations so far."""
        for path, node in self._saved.items():
            if node is None:
                self._nodes.pop(path, None)
            else:
                self._nodes[path] = node
        self._saved.clear()
        self.writes.clear()

    def _create(self, operation: Create) -> str:
        parent_path = parent_of(operation.path)
        parent = _node_at(self._nodes, parent_path, operation.path)
        path = operation.path
        if operation.sequential:
            path += f"{parent.creates:010d}"
        if path in self._nodes:
            raise NodeExistsError(path)
        if parent.owner:
            raise NoChildrenForEphemeralsError(path)
        self._save(parent_path, path)
        parent.creates += 1
        parent.children += 1
        parent.pzxid = self._zxid
        self._nodes[path] = _Node(
            data=operation.data,
            owner=self._session if operation.ephemeral else 0,
            czxid=self._zxid,
            mzxid=self._zxid,
            pzxid=self._zxid,
            ctime=self._now_ms,
            mtime=self._now_ms,
        )
        self._wrote("create", path, None, operation.data)
        return path

    def _set(self, operation: SetData) -> Stat:
        node = self._at_version(operation.path, operation.version)
        self._save(operation.path)
        before, node.data = node.data, operation.data
        node.version += 1
        node.mzxid = self._zxid
        node.mtime = self._now_ms
        self._wrote("set", operation.path, before, operation.data)
        return node.stat

    def _delete(self, operation: Delete) -> None:
        node = self._at_version(operation.path, operation.version)
        if node.children:
            raise NotEmptyError(operation.path)
        parent_path = parent_of(operation.path)
        self._save(parent_path, operation.path)
        parent = self._nodes[parent_path]
        parent.children -= 1
        parent.pzxid = self._zxid
        del self._nodes[operation.path]
        self._wrote("delete", operation.path, node.data, None)

    def _at_version(self, path: str, version: int) -> _Node:
        node = _node_at(self._nodes, path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        return node

    def _save(self, *touched: str) -> None:
        """Keep a copy of each node as it was before the transaction first changed it."""
        for path in touched:
            if path not in self._saved:
                self._saved[path] = copy.copy(self._nodes.get(path))

    def _wrote(self, op: str, path: str, before: bytes | None, after: bytes | None) -> None:
        self.writes.append(
            ZnodeWrite(self._zxid, self._now_ms, self._session, op, path, before, after)
        )


# ---- watches -------------------------------------------------------------------------------------


class _Watches:
    """The watches of all sessions, and the events that they have not taken yet.

    Watches are one-shot and per session: a session that watches a path twice gets one event. get
    and exists set data watches (exists also on a missing znode); children sets child watches.
    Events are queued per session in the order of the writes until the session takes them.
    """

    def __init__(self) -> None:
        self._data: defaultdict[str, set[int]] = defaultdict(set)
        self._children: defaultdict[str, set[int]] = defaultdict(set)
        self._queues: dict[int, deque[WatchedEvent]] = {}

    def open(self, session: int) -> None:
        self._queues[session] = deque()

    def end(self, session: int) -> None:
        """Remove the session's watches; its last event reports its end."""
        for table in (self._data, self._children):
            for path in [path for path, watchers in table.items() if session in watchers]:
                table[path].discard(session)
                if not table[path]:
                    del table[path]
        self._queues[session].append(WatchedEvent(EventType.SESSION_EXPIRED, ""))

    def watch_data(self, session: int, path: str) -> None:
        self._data[path].add(session)

    def watch_children(self, session: int, path: str) -> None:
        self._children[path].add(session)

    def take(self, session: int) -> list[WatchedEvent]:
        """Return the session's events so far, oldest first, and remove them from the queue."""
        queue = self._queues[session]
        events = list(queue)
        queue.clear()
        return events

    def fire(self, write: ZnodeWrite) -> set[int]:
        """Queue the events of one write. Returns the sessions that have new events."""
        notified = self._send(self._data, write.path, _DATA_EVENTS[write.op], set())
        if write.op == "set":
            return notified
        if write.op == "delete":
            # A session that watched both the data and the children gets one event of the deletion.
            notified |= self._send(self._children, write.path, EventType.NODE_DELETED, notified)
        parent = parent_of(write.path)
        return notified | self._send(self._children, parent, EventType.NODE_CHILDREN_CHANGED, set())

    def _send(
        self, table: dict[str, set[int]], path: str, kind: EventType, notified: set[int]
    ) -> set[int]:
        watchers = table.pop(path, set())
        for session in watchers - notified:
            self._queues[session].append(WatchedEvent(kind, path))
        return watchers


# ---- the tree ------------------------------------------------------------------------------------


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
        self._nodes = {ROOT: _Node(b"", 0, 0, 0, 0, now_ms, now_ms)}
        self._names: dict[str, set[str]] = {ROOT: set()}
        self._limit = max_request_bytes
        self._on_write = on_write
        self._watches = _Watches()
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

    def _read(self, session: int, path: str) -> _Node:
        requests.validate_path(path)
        self._check_session(session, path)
        return _node_at(self._nodes, path)

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

    def _begin(self, session: int, now_ms: int) -> _Transaction:
        self._zxid += 1
        return _Transaction(self._nodes, zxid=self._zxid, session=session, now_ms=now_ms)

    def _commit(self, transaction: _Transaction) -> None:
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
            self._names[parent or ROOT].add(name)
            self._names[write.path] = set()
        elif write.op == "delete":
            self._names[parent or ROOT].discard(name)
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


# ---- a session -----------------------------------------------------------------------------------


class EmbeddedStore:
    """A session on a ``ZnodeTree``. ``now_ms`` returns the time of each write.

    ``wakeup`` is called when new events are available.
    """

    def __init__(
        self,
        tree: ZnodeTree,
        now_ms: Callable[[], int],
        *,
        wakeup: Callable[[], None] | None = None,
    ) -> None:
        self._tree = tree
        self._now_ms = now_ms
        self._wakeup = wakeup
        self._closed = False
        self._session = tree.open_session(wakeup=wakeup)

    @property
    def session_id(self) -> int:
        return self._session

    @property
    def expired(self) -> bool:
        return not (self._closed or self._tree.is_open(self._session))

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        made = self._write(Create(path, data, ephemeral, sequential))
        assert isinstance(made, str)
        return made

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        stat = self._write(SetData(path, data, version))
        assert isinstance(stat, Stat)
        return stat

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._write(Delete(path, version))

    def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        return self._tree.multi(self._session, operations, now_ms=self._now_ms())

    def get(self, path: str, *, watch: bool = False) -> Znode:
        return self._tree.get(self._session, path, watch=watch)

    def exists(self, path: str, *, watch: bool = False) -> Stat | None:
        return self._tree.exists(self._session, path, watch=watch)

    def children(self, path: str, *, watch: bool = False) -> list[str]:
        return self._tree.children(self._session, path, watch=watch)

    def take_events(self) -> list[WatchedEvent]:
        return self._tree.take_events(self._session)

    def renew(self) -> None:
        self._tree.end_session(self._session, now_ms=self._now_ms())
        self._session = self._tree.open_session(wakeup=self._wakeup)

    def close(self) -> None:
        self._closed = True
        self._tree.end_session(self._session, now_ms=self._now_ms())

    def _write(self, operation: Operation) -> OperationResult:
        return self._tree.write(self._session, operation, now_ms=self._now_ms())
