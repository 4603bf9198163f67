"""Offsets of consumers from before 0.9: znodes /consumers/GROUP/offsets/TOPIC/PARTITION.

Versions 0 of OffsetCommit and OffsetFetch write and read them through the broker, and so do old
consumers themselves.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.znodes import ZnodeError
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.coordinators.offset_store import FetchedOffset, OffsetStore
from mockbroker.simulation.state.cluster_parts import TopicPartition, find_partition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.turns import step

__all__ = ["ZnodeOffsets", "offset_path"]


def offset_path(group_id: str, tp: TopicPartition) -> str:
    """The znode of a committed offset."""
    return f"/consumers/{group_id}/offsets/{tp[0]}/{tp[1]}"


class ZnodeOffsets:
    """The offsets in the znodes of one cluster in ZooKeeper mode."""

    def __init__(self, controller: Controller, offsets: OffsetStore) -> None:
        self._controller = controller
        self._offsets = offsets
        self.turns = controller.turns

    @step()
    def commit(self, group_id: str, tp: TopicPartition, commit: OffsetToCommit) -> ErrorCode:
        """Store an offset as version 0 of OffsetCommit (8) does, and return its error."""
        code = self._offsets.metadata_error(commit.metadata)
        if code:
            return code
        path, znodes = offset_path(group_id, tp), self._controller.znodes
        try:
            znodes.read(path)
            znodes.set("offset_commit", path, str(commit.offset))
        except ZnodeError:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    def fetch(self, broker_id: int, group_id: str, tp: TopicPartition) -> FetchedOffset:
        """Read an offset as version 0 of OffsetFetch (9) does. Without a znode the partition has
        error 3; a text that is not a number has error -1."""
        if find_partition(self._controller.metadata_view(broker_id).topics, tp) is None:
            return FetchedOffset(tp, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        with self.turns.reading():
            try:
                text = self._controller.znodes.read(offset_path(group_id, tp))
                if not text:
                    return FetchedOffset(tp, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                return FetchedOffset(tp, int(text))
            except (ZnodeError, ValueError):
                return FetchedOffset(tp, error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
