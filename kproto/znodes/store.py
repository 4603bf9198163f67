"""The interface that a ZooKeeper controller is written against, and its embedded backend.

``ZnodeStore`` is one session on one server. Two backends: ``EmbeddedStore`` here, on a
``ZnodeTree`` in this process, and ``kproto.client.zookeeper.KazooStore`` on a real one. Both pass
the same tests.
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
    """A session's view of the znodes. Every call returns when it is done.

    All raise ``kproto.znodes.errors``: ``BadArgumentsError`` for a path that is none,
    ``SessionExpiredError`` once the session has ended, ``ConnectionLossError`` where the
    connection broke (also for a request over the size limit), and what each names.

    Watches are one-shot and pulled: what fired is handed out by ``take_events``, in the order of
    the changes. An event about a change made before ``take_events`` was called, by whomever, is
    among those it returns.
    """

    @property
    def session_id(self) -> int:
        """As in the ``ephemeral_owner`` of the session's own znodes."""
        ...

    @property
    def expired(self) -> bool:
        """Whether the session has ended, and not by ``close``."""
        ...

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Returns the path made, digits included. NoNode (parent), NodeExists,
        NoChildrenForEphemerals."""
        ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """NoNode, BadVersion."""
        ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """NoNode, BadVersion, NotEmpty."""
        ...

    def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """All or nothing; the error's ``operation`` is the index of the first that failed."""
        ...

    def get(self, path: str, *, watch: bool = False) -> Znode:
        """NoNode, and then no watch is left."""
        ...

    def exists(self, path: str, *, watch: bool = False) -> Stat | None:
        """None where there is none; a watch is left either way."""
        ...

    def children(self, path: str, *, watch: bool = False) -> list[str]:
        """Names, sorted. NoNode, and then no watch is left."""
        ...

    def take_events(self) -> list[WatchedEvent]:
        """What fired since the last call, oldest first."""
        ...

    def renew(self) -> None:
        """Begin another session after this one ended, without watches and events. Raises
        ConnectionLoss where the server does not give one."""
        ...

    def close(self) -> None:
        """End the session: its ephemeral znodes go. Twice is once."""
        ...


class EmbeddedStore:
    """A session on a ``ZnodeTree``. ``now_ms`` is asked for the time at every write.

    ``wakeup`` is called when there are events to take that were not there before.
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
