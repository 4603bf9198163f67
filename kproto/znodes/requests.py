"""Check requests before sending: paths, versions, and size on the wire.

ZooKeeper does not limit znodes or their data but whole requests. If a client's request is longer
than ``jute.maxbuffer`` (1,048,575 bytes by default), not counting the four bytes of its length, the
server closes the connection and applies nothing. A request of exactly that length passes. The tests
compare this with ZooKeeper 3.8.4. The server does not limit what is read.

The largest data of a create is therefore 1,048,575 - 47 - the path's UTF-8 length (the other fields
are the header, two lengths, flags, and the ACL ``world:anyone``, the only one that Kafka sets
without SASL), and the largest of a set is 1,048,575 - 20 - the path's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kproto.safe_text import printable
from kproto.znodes.errors import BadArgumentsError, ConnectionLossError
from kproto.znodes.model import Check, Create, Delete, Operation, SetData

__all__ = [
    "MAX_REQUEST_BYTES",
    "ROOT",
    "check_size",
    "multi_size",
    "parent_of",
    "request_size",
    "validate",
    "validate_path",
]

ROOT = "/"

MAX_REQUEST_BYTES = 0xFFFFF
"""The default of ``jute.maxbuffer``: one byte less than 1 MiB."""

_INT = 4
_HEADER = 2 * _INT  # xid, type
_MULTI_HEADER = 9  # type, done, error; before each operation, and once more at the end
_OPEN_ACL = 3 * _INT + _INT + len("world") + len("anyone")  # count, perms, two lengths
_VERSIONS = range(-(2**31), 2**31)

# org.apache.zookeeper.common.PathUtils. Java iterates over UTF-16 units, and surrogates are in the
# first refused range, so no name outside the basic plane is valid either.
_REFUSED = "[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]"


# ---- paths ---------------------------------------------------------------------------------------


def validate_path(path: str) -> None:
    """Raise ``BadArgumentsError`` unless ZooKeeper accepts ``path``.

    A Java client refuses other paths before sending; a server responds with BadArguments.
    """
    problem = _problem(path)
    if problem:
        raise BadArgumentsError(printable(path), problem)


def _problem(path: str) -> str:
    """Return one reason why the path is invalid, or ""."""
    if not path:
        return "a path must have at least one character"
    if path[0] != "/":
        return "a path must start with /"
    if path == ROOT:
        return ""
    if path[-1] == "/":
        return "a path must not end with /"
    names = path[1:].split("/")
    if "" in names:
        return "a path must not contain empty names"
    if "." in names or ".." in names:
        return "a path must not contain relative names"
    refused = re.search(_REFUSED, path)
    if refused:
        return f"a path must not contain U+{ord(refused[0]):04X}"
    return ""


def parent_of(path: str) -> str:
    """Return the path without its last name. The root is its own parent."""
    return path.rpartition("/")[0] or ROOT


# ---- operations ----------------------------------------------------------------------------------


def validate(operation: Operation) -> None:
    """Raise ``BadArgumentsError`` for a path or version that clients do not send.

    A sequential path may not end in "/" here (ZooKeeper would use the digits as the whole name):
    kazoo drops that slash inside a multi, and Kafka always gives a prefix.
    """
    validate_path(operation.path)
    if not isinstance(operation, Create) and operation.version not in _VERSIONS:
        raise BadArgumentsError(operation.path, f"version {operation.version} is not an int32")
    if operation.path == ROOT:
        if isinstance(operation, Delete):
            raise BadArgumentsError(operation.path, "the root cannot be deleted")
        if isinstance(operation, Create) and operation.sequential:
            raise BadArgumentsError(operation.path, "a sequential name needs a prefix")


def request_size(operation: Operation) -> int:
    """Return the size of the request on the wire in bytes, without its own length."""
    return _HEADER + _body_size(operation)


def multi_size(operations: Sequence[Operation]) -> int:
    """Return the size of several operations as one request."""
    bodies = sum(_MULTI_HEADER + _body_size(operation) for operation in operations)
    return _HEADER + bodies + _MULTI_HEADER


def _body_size(operation: Operation) -> int:
    size = _INT + len(operation.path.encode())
    match operation:
        case Create():
            return size + _INT + len(operation.data) + _OPEN_ACL + _INT
        case SetData():
            return size + _INT + len(operation.data) + _INT
        case Delete() | Check():
            return size + _INT


def check_size(path: str, size: int, limit: int) -> None:
    """Raise what a client sees for a request that is too long: its connection breaks."""
    if size > limit:
        raise ConnectionLossError(
            path, f"the request has {size} bytes, but the server accepts {limit} (jute.maxbuffer)"
        )
