"""What ZooKeeper says no with, under ZooKeeper's names, codes and text; and znodes nobody can read.

::

    kproto.KprotoError
    ├── ZnodeError                          any answer of ZooKeeper's: ``code``, ``name``, ``path``
    │   ├── ConnectionLossError                 -4
    │   ├── BadArgumentsError                   -8
    │   ├── NoNodeError                         -101
    │   ├── BadVersionError                     -103
    │   ├── NoChildrenForEphemeralsError        -108
    │   ├── NodeExistsError                     -110
    │   ├── NotEmptyError                       -111
    │   └── SessionExpiredError                 -112
    └── MalformedZnodeError                 data of a znode of Kafka's that Kafka could not read

The codes are those of ``org.apache.zookeeper.KeeperException.Code``. A code without a class here
(no ACL of ours leads to one) is a plain ``ZnodeError`` with that code and name.
"""

from __future__ import annotations

from kproto.errors import KprotoError

__all__ = [
    "BadArgumentsError",
    "BadVersionError",
    "ConnectionLossError",
    "MalformedZnodeError",
    "NoChildrenForEphemeralsError",
    "NoNodeError",
    "NodeExistsError",
    "NotEmptyError",
    "SessionExpiredError",
    "ZnodeError",
]


class ZnodeError(KprotoError):
    """An operation that ZooKeeper refused or could not finish.

    The text begins as Java's does: ``KeeperErrorCode = NoNode for /a``. ``operation`` is the index
    of the operation of a ``multi`` that failed, None outside one.
    """

    code = 0
    name = "SystemError"

    def __init__(
        self,
        path: str,
        detail: str = "",
        *,
        code: int | None = None,
        name: str | None = None,
        operation: int | None = None,
    ) -> None:
        self.path = path
        self.detail = detail
        self.operation = operation
        if code is not None:
            self.code = code
        if name is not None:
            self.name = name
        where = f" for {path}" if path else ""
        which = "" if operation is None else f", operation {operation} of a multi"
        why = f": {detail}" if detail else ""
        super().__init__(f"KeeperErrorCode = {self.name}{where}{which}{why}")

    def in_multi(self, operation: int) -> ZnodeError:
        """The same error, naming which operation of a ``multi`` met it."""
        return type(self)(
            self.path, self.detail, code=self.code, name=self.name, operation=operation
        )


class ConnectionLossError(ZnodeError):
    """The connection broke before the answer. Whether a write was applied is not known, except
    where the server refused the request for its size: then it was not."""

    code = -4
    name = "ConnectionLoss"


class BadArgumentsError(ZnodeError):
    """A path or version that no server takes; nothing was sent."""

    code = -8
    name = "BadArguments"


class NoNodeError(ZnodeError):
    """No such znode, or no parent for one to create."""

    code = -101
    name = "NoNode"


class BadVersionError(ZnodeError):
    """The znode is at another version than the one expected."""

    code = -103
    name = "BadVersion"


class NoChildrenForEphemeralsError(ZnodeError):
    """The parent is ephemeral, and those are leaves."""

    code = -108
    name = "NoChildrenForEphemerals"


class NodeExistsError(ZnodeError):
    """A znode of that path is there already."""

    code = -110
    name = "NodeExists"


class NotEmptyError(ZnodeError):
    """A znode with children cannot be deleted."""

    code = -111
    name = "NotEmpty"


class SessionExpiredError(ZnodeError):
    """The session has ended, by closing or by expiring; its ephemeral znodes are gone."""

    code = -112
    name = "Session expired"


class MalformedZnodeError(KprotoError, ValueError):
    """A znode's data is not what Kafka keeps there. ``path`` says where, ``reason`` why."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")
