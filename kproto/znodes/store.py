"""The interface between ZooKeeper controllers and their znodes, and its embedded backend.

``ZnodeStore`` is one session on one server. ``EmbeddedStore`` is the backend on a ``ZnodeTree`` in
this process, ``kproto.client.zookeeper.KazooStore`` the one on a real server. Both pass the same
tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kproto.znodes.model import (
    ANY_VERSION,
    Create,
    Delete,
    Operation,
    OperationResult,
    SetData,
    Stat,
    WatchedEvent,
    Znode,
)
from kproto.znodes.tree import ZnodeTree

__all__ = ["EmbeddedStore", "ZnodeStore"]


class ZnodeStore(Protocol):
    """A session's view of the znodes. Calls return when they are done.

    All raise ``kproto.znodes.errors``: ``BadArgumentsError`` for an invalid path,
    ``SessionExpiredError`` once the session has ended, ``ConnectionLossError`` if the connection
    broke (also for a request over the size limit), and the errors that each method names.

    Watches are one-shot, and events are polled: ``take_events`` returns them in the order of the
    changes. It includes the events of all changes made before the call, by whichever session.
    """

    @property
    def session_id(self) -> int:
        """The value in ``ephemeral_owner`` of the session's own znodes."""
        ...

    @property
    def expired(self) -> bool:
        """Whether the session has ended other than by ``close``."""
        ...

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a znode and return its path, digits included. NoNode (parent), NodeExists,
        NoChildrenForEphemerals."""
        ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Set the data. NoNode, BadVersion."""
        ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete the znode. NoNode, BadVersion, NotEmpty."""
        ...

    def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Apply all operations or none. ``operation`` of the error is the index of the first that
        failed."""
        ...

    def get(self, path: str, *, watch: bool = False) -> Znode:
        """Return the znode. NoNode, in which case no watch is set."""
        ...

    def exists(self, path: str, *, watch: bool = False) -> Stat | None:
        """Return the stat, or None if there is no znode. The watch is set either way."""
        ...

    def children(self, path: str, *, watch: bool = False) -> list[str]:
        """Return the names of the children, sorted. NoNode, in which case no watch is set."""
        ...

    def take_events(self) -> list[WatchedEvent]:
        """Return the events since the last call, oldest first."""
        ...

    def renew(self) -> None:
        """Begin another session after this one ended, without watches and events. Raises
        ConnectionLoss if the server does not grant one."""
        ...

    def close(self) -> None:
        """End the session and delete its ephemeral znodes. A second call has no effect."""
        ...


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
