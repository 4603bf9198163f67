"""ZooKeeper as used by the controllers of Kafka 2.4 to 3.9, and by the drafts.

``ZnodeTree`` is a server's data in memory, without I/O or a clock. ``EmbeddedStore`` is one session
on it and ``kproto.client.zookeeper.KazooStore`` one on a real server; ``ZnodeStore`` is the
interface of both. ``kafka_znodes`` and ``plan_znodes`` contain the paths and texts of Kafka's
znodes, ``request_znodes`` those of KIP-236's older draft.

Start at ``store`` for the interface, and at ``tree`` for the rules of each operation.
"""

from __future__ import annotations

from kproto.znodes.errors import (
    BadArgumentsError,
    BadVersionError,
    ConnectionLossError,
    MalformedZnodeError,
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
from kproto.znodes.requests import MAX_REQUEST_BYTES
from kproto.znodes.store import ZnodeStore
from kproto.znodes.tree import EmbeddedStore, ZnodeTree, ZnodeWrite

__all__ = [
    "ANY_VERSION",
    "MAX_REQUEST_BYTES",
    "BadArgumentsError",
    "BadVersionError",
    "Check",
    "ConnectionLossError",
    "Create",
    "Delete",
    "EmbeddedStore",
    "EventType",
    "MalformedZnodeError",
    "NoChildrenForEphemeralsError",
    "NoNodeError",
    "NodeExistsError",
    "NotEmptyError",
    "Operation",
    "OperationResult",
    "SessionExpiredError",
    "SetData",
    "Stat",
    "WatchedEvent",
    "Znode",
    "ZnodeError",
    "ZnodeStore",
    "ZnodeTree",
    "ZnodeWrite",
]
