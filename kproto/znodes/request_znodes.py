"""What the older revision of KIP-236 keeps in znodes: requests, a znode a reassignment, its switch.

Data and pure functions. The page prints a request without commas between its fields; here it is
JSON, written and read. What a reassignment's own znode holds the page leaves open but for the
replicas, the legacy flag and ``top``. A field that is none of these makes a text malformed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from kproto.znodes.texts import Ids, Int32, decode, encode

__all__ = [
    "REASSIGNMENTS",
    "REASSIGNMENT_REQUESTS",
    "REASSIGN_CANCEL",
    "REASSIGN_PARTITIONS_EXTRA",
    "REQUEST_PREFIX",
    "ReassignmentRequest",
    "RequestedReassignment",
    "decode_reassignment",
    "decode_request",
    "encode_reassignment",
    "encode_request",
    "reassignment_path",
]

REASSIGNMENT_REQUESTS = "/admin/reassignment_requests"
REQUEST_PREFIX = f"{REASSIGNMENT_REQUESTS}/request_"
"""Of persistent sequence znodes."""
REASSIGNMENTS = "/admin/reassignments"
REASSIGN_CANCEL = "/admin/reassign_cancel"
"""While it is there, whatever its data, nothing is reassigned."""
REASSIGN_PARTITIONS_EXTRA = "/admin/reassign_partitions_extra"
"""Its text is that of ``/admin/reassign_partitions``."""


def reassignment_path(topic: str, partition: int) -> str:
    return f"{REASSIGNMENTS}/{topic}/{partition}"


class ReassignmentRequest(msgspec.Struct, frozen=True):
    """Where partitions shall go. ``legacy``: it came through ``/admin/reassign_partitions``."""

    assignments: Mapping[tuple[str, int], Sequence[int]]
    legacy: bool = False


def encode_request(request: ReassignmentRequest) -> bytes:
    """Topics in the order of their first partition, partitions of a topic in the order given."""
    topics: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), replicas in request.assignments.items():
        topics.setdefault(topic, {})[str(partition)] = list(replicas)
    return encode({"version": 1, "assignments": topics, "legacy": request.legacy})


_Replicas = dict[Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,9})$")], Ids]


class _RequestText(msgspec.Struct, forbid_unknown_fields=True):
    assignments: dict[str, _Replicas]
    legacy: bool = False
    version: Int32 = 1


def decode_request(path: str, data: bytes) -> ReassignmentRequest:
    """Without a legacy flag it is none; in the order of the text."""
    text = decode(path, data, _RequestText)
    return ReassignmentRequest(
        {
            (topic, int(partition)): replicas
            for topic, partitions in text.assignments.items()
            for partition, replicas in partitions.items()
        },
        text.legacy,
    )


class RequestedReassignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One partition's reassignment. ``top`` is how many replicas it had when this began, the most
    that a change of it on the way keeps without being asked to."""

    replicas: Annotated[Ids, msgspec.Meta(min_length=1)]
    top: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    legacy: bool = False
    version: Int32 = 1


def encode_reassignment(reassignment: RequestedReassignment) -> bytes:
    text: dict[str, Any] = {
        "version": 1,
        "replicas": list(reassignment.replicas),
        "legacy": reassignment.legacy,
        "top": reassignment.top,
    }
    return encode(text)


def decode_reassignment(path: str, data: bytes) -> RequestedReassignment:
    return decode(path, data, RequestedReassignment)
