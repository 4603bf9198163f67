"""Make the metadata and the assignments of consumers readable in the bodies of group requests.

JoinGroup and SyncGroup carry them as bytes of the group's own protocol. A subscription becomes
``{"version", "topics", "owned"}`` and an assignment ``{"version", "partitions"}``, with partitions
as ``"foo-0"``; bytes that are neither stay as they are.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Any, Final

from kproto.errors import KprotoError
from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

__all__ = ["with_group_data"]

_JOIN_GROUP: Final = 11
_SYNC_GROUP: Final = 14
_HIGHEST_SUBSCRIPTION: Final = 3
_OWNED_SINCE: Final = 1
_version: Final = Struct(">h")


def with_group_data(api_key: int | None, body: Any) -> Any:
    """Return the body with what can be read in it."""
    if not isinstance(body, Mapping):
        return body
    if api_key == _JOIN_GROUP:
        return {
            name: [_with(each, "metadata", _subscription) for each in value]
            if name in ("protocols", "members")
            else value
            for name, value in body.items()
        }
    if api_key == _SYNC_GROUP and "assignments" in body:
        rows = [_with(each, "assignment", _assignment) for each in body["assignments"]]
        return {**body, "assignments": rows}
    return _with(body, "assignment", _assignment) if api_key == _SYNC_GROUP else body


def _with(row: Mapping[str, Any], name: str, read: Any) -> dict[str, Any]:
    found = dict(row)
    try:
        data = base64.b64decode(row[name], validate=True)
        if data:
            found[name] = read(data, _version.unpack_from(data)[0])
    except (KeyError, TypeError, binascii.Error, KprotoError, ValueError):
        pass  # not what consumers send
    return found


def _subscription(data: bytes, version: int) -> dict[str, Any]:
    read = min(version, _HIGHEST_SUBSCRIPTION)
    body, _ = ConsumerProtocolSubscription.decode_from(data, read, _version.size)
    owned = body.owned_partitions if version >= _OWNED_SINCE else []
    return {
        "version": version,
        "topics": sorted(body.topics),
        "owned": _keys((each.topic, each.partitions) for each in owned),
    }


def _assignment(data: bytes, version: int) -> dict[str, Any]:
    body, _ = ConsumerProtocolAssignment.decode_from(data, 0, _version.size)
    found = ((each.topic, each.partitions) for each in body.assigned_partitions)
    return {"version": version, "partitions": _keys(found)}


def _keys(rows: Iterable[tuple[str, Iterable[int]]]) -> list[str]:
    pairs = sorted((topic, index) for topic, indexes in rows for index in indexes)
    return [f"{topic}-{index}" for topic, index in pairs]
