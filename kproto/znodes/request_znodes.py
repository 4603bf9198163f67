"""The znodes of KIP-236's older revision: requests, one znode per reassignment, and the switch.

This module contains data and pure functions. The KIP prints a request without commas between its
fields; here it is valid JSON. Except for the replicas, the legacy flag and ``top``, the KIP does
not define the content of a reassignment's own znode. Any other field makes a text malformed.
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
"""Prefix of persistent sequential znodes."""
REASSIGNMENTS = "/admin/reassignments"
REASSIGN_CANCEL = "/admin/reassign_cancel"
"""While this znode exists, whatever its data, nothing is reassigned."""
REASSIGN_PARTITIONS_EXTRA = "/admin/reassign_partitions_extra"
"""Its text is that of ``/admin/reassign_partitions``."""


def reassignment_path(topic: str, partition: int) -> str:
    return f"{REASSIGNMENTS}/{topic}/{partition}"


class ReassignmentRequest(msgspec.Struct, frozen=True):
    """The targets of partitions. ``legacy``: it came through ``/admin/reassign_partitions``."""

    assignments: Mapping[tuple[str, int], Sequence[int]]
    legacy: bool = False


def encode_request(request: ReassignmentRequest) -> bytes:
    """Encode topics in the order of their first partition, and a topic's partitions in the given
    order."""
    topics: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), replicas in request.assignments.items():
        topics.setdefault(topic, {})[str(partition)] = list(replicas)
    return encode({"version": 1, "assignments": topics, "legacy": request.legacy})


_Replicas = dict[Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,9})$")], Ids]


class _RequestText(msgspec.Struct, forbid_unknown_fields=True):
    assignments: dict[str, _Replicas]
    legacy: bool = False
    version: Int32 = 1


def decode_request(path: str, data: bytes | str) -> ReassignmentRequest:
    """Decode a request, in the order of the text. Without a legacy flag it is not a legacy one."""
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
    """One partition's reassignment. ``top`` is its number of replicas at the start, the most that a
    change during the reassignment keeps unless requested."""

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


def decode_reassignment(path: str, data: bytes | str) -> RequestedReassignment:
    return decode(path, data, RequestedReassignment)
