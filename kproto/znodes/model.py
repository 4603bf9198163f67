"""The arguments and results of a znode store: stats, watch events, and the operations of a multi.

Field names are those of ZooKeeper's own records (``Stat``, ``WatcherEvent``) in snake_case.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

import msgspec

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
"""As an expected version, this matches any version."""


class Stat(NamedTuple):
    """A znode's metadata, in the order of ZooKeeper's record.

    ``czxid``, ``mzxid`` and ``pzxid`` are the transactions that created the znode, last set its
    data, and last added or removed a child. ``ctime`` and ``mtime`` are ms since the epoch.
    ``version`` counts the sets and ``cversion`` the children added and removed. ``ephemeral_owner``
    is the session that owns an ephemeral znode, 0 for a persistent one.
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
    """The result of a get."""

    data: bytes
    stat: Stat


class EventType(Enum):
    """The reason for a watch event. The first four are ZooKeeper's; the others concern the
    session."""

    NODE_CREATED = "NodeCreated"
    NODE_DELETED = "NodeDeleted"
    NODE_DATA_CHANGED = "NodeDataChanged"
    NODE_CHILDREN_CHANGED = "NodeChildrenChanged"
    CONNECTION_LOST = "ConnectionLost"
    """The session may survive, but its watches are lost: read again, and set new watches."""
    SESSION_EXPIRED = "SessionExpired"


class WatchedEvent(NamedTuple):
    """One event. ``path`` is empty if the event concerns the session."""

    type: EventType
    path: str


class Create(msgspec.Struct, frozen=True):
    """Add a znode. A sequential one gets ten digits after ``path``, from its parent's counter."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class SetData(msgspec.Struct, frozen=True):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(msgspec.Struct, frozen=True):
    path: str
    version: int = ANY_VERSION


class Check(msgspec.Struct, frozen=True):
    """Change nothing, and fail unless the znode exists with this version."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Create | SetData | Delete | Check
OperationResult: TypeAlias = str | Stat | None
"""The path of a Create, the new Stat of a SetData, None for the others."""
