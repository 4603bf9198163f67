"""ZooKeeper's errors with its names, codes and texts, and the error of an unreadable znode.

::

    kproto.KprotoError
    ├── ZnodeError                          any error of ZooKeeper: ``code``, ``name``, ``path``
    │   ├── ConnectionLossError                 -4
    │   ├── BadArgumentsError                   -8
    │   ├── NoNodeError                         -101
    │   ├── BadVersionError                     -103
    │   ├── NoChildrenForEphemeralsError        -108
    │   ├── NodeExistsError                     -110
    │   ├── NotEmptyError                       -111
    │   └── SessionExpiredError                 -112
    └── MalformedZnodeError                 data of a Kafka znode that Kafka could not read

The codes are those of ``org.apache.zookeeper.KeeperException.Code``. A code without a class here
(our ACLs cause none) is a plain ``ZnodeError`` with that code and name.
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
    of the failed operation in a ``multi``, None outside one.
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
        """Return the same error with the index of the operation in a ``multi``."""
        return type(self)(
            self.path, self.detail, code=self.code, name=self.name, operation=operation
        )


class ConnectionLossError(ZnodeError):
    """The connection broke before the response. It is unknown whether a write was applied, unless
    the server refused the request for its size: then it was not."""

    code = -4
    name = "ConnectionLoss"


class BadArgumentsError(ZnodeError):
    """A path or version that no server accepts; nothing was sent."""

    code = -8
    name = "BadArguments"


class NoNodeError(ZnodeError):
    """There is no such znode, or no parent for a znode to create."""

    code = -101
    name = "NoNode"


class BadVersionError(ZnodeError):
    """The znode does not have the expected version."""

    code = -103
    name = "BadVersion"


class NoChildrenForEphemeralsError(ZnodeError):
    """The parent is ephemeral and cannot have children."""

    code = -108
    name = "NoChildrenForEphemerals"


class NodeExistsError(ZnodeError):
    """A znode with that path already exists."""

    code = -110
    name = "NodeExists"


class NotEmptyError(ZnodeError):
    """A znode with children cannot be deleted."""

    code = -111
    name = "NotEmpty"


class SessionExpiredError(ZnodeError):
    """The session was closed or has expired; its ephemeral znodes are deleted."""

    code = -112
    name = "Session expired"


class MalformedZnodeError(KprotoError, ValueError):
    """A znode's data is not in Kafka's format. ``path`` is the znode's and ``reason`` the
    problem."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")
