"""The interface between ZooKeeper controllers and their znodes.

``ZnodeStore`` is one session on one server. ``tree.EmbeddedStore`` is the backend on a server in
this process, ``kproto.client.zookeeper.KazooStore`` the one on a real server. Both pass the same
tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kproto.znodes.model import ANY_VERSION, Operation, OperationResult, Stat, WatchedEvent, Znode

__all__ = ["ZnodeStore"]


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
