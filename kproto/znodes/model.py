"""The values that go in and out of a znode store: stats, watch events, the operations of a multi.

Field names are those of ZooKeeper's own records (``Stat``, ``WatcherEvent``), in Python's
spelling. Nothing here acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

__all__ = [
    "ANY_VERSION",
    "Check",
    "Create",
    "Delete",
    "EventType",
    "Operation",
    "OperationResult",
    "SetData",
    "Stat",
    "WatchedEvent",
    "Znode",
]

ANY_VERSION = -1
"""As an expected version: whatever version the znode is at."""


class Stat(NamedTuple):
    """A znode's bookkeeping, in the order of ZooKeeper's record.

    ``czxid``, ``mzxid``, ``pzxid`` are the transactions that created it, last set its data, and
    last added or removed a child. ``ctime`` and ``mtime`` are ms since the epoch. ``version``
    counts the sets, ``cversion`` the children added and removed. ``ephemeral_owner`` is the
    session an ephemeral znode goes with, 0 for a persistent one.
    """

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class Znode(NamedTuple):
    """What a get returns."""

    data: bytes
    stat: Stat


class EventType(Enum):
    """Why a watch fired. The first four are ZooKeeper's; the others tell of the session itself."""

    NODE_CREATED = "NodeCreated"
    NODE_DELETED = "NodeDeleted"
    NODE_DATA_CHANGED = "NodeDataChanged"
    NODE_CHILDREN_CHANGED = "NodeChildrenChanged"
    CONNECTION_LOST = "ConnectionLost"
    """The session may live on, but its watches are gone: read again, and watch again."""
    SESSION_EXPIRED = "SessionExpired"


class WatchedEvent(NamedTuple):
    """One firing. ``path`` is empty where the event is about the session."""

    type: EventType
    path: str


@dataclass(frozen=True, slots=True)
class Create:
    """Add a znode. A sequential one gets ten digits after ``path``, from its parent's counter."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing; fail unless the znode is there at this version."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Create | SetData | Delete | Check
OperationResult: TypeAlias = str | Stat | None
"""Of a Create the path made, of a SetData the new Stat, of the others nothing."""
