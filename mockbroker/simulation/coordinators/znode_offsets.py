"""Offsets of consumers from before 0.9: znodes /consumers/GROUP/offsets/TOPIC/PARTITION.

Versions 0 of OffsetCommit and OffsetFetch write and read them through the broker, and so do old
consumers themselves.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.znodes import ZnodeError
from mockbroker.simulation.coordinators.offset_store import FetchedOffset
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.state.controller_znodes import ControllerZnodes

__all__ = ["offset_path", "read_offset", "write_offset"]


def offset_path(group_id: str, tp: TopicPartition) -> str:
    """The znode of a committed offset."""
    return f"/consumers/{group_id}/offsets/{tp[0]}/{tp[1]}"


def write_offset(
    znodes: ControllerZnodes, group_id: str, tp: TopicPartition, offset: int
) -> ErrorCode:
    """Write the znode and return the error of the partition."""
    path = offset_path(group_id, tp)
    try:
        znodes.read(path)
        znodes.set("offset_commit", path, str(offset))
    except ZnodeError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


def read_offset(znodes: ControllerZnodes, group_id: str, tp: TopicPartition) -> FetchedOffset:
    """Read the znode. Without one the partition has error 3; a text that is not a number has -1."""
    try:
        text = znodes.read(offset_path(group_id, tp))
        if not text:
            return FetchedOffset(tp, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return FetchedOffset(tp, int(text))
    except (ZnodeError, ValueError):
        return FetchedOffset(tp, error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
