"""Fetch requests of sessions (KIP-227), completed with the partitions that they do not repeat.

Fault rules select by what a request reads.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from kproto.codec.message import Message
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.fetching.fetches import Fetches
from mockbroker.simulation.fetching.query import PartitionPosition
from mockbroker.simulation.state.cluster_parts import Topic

__all__ = ["MockView", "with_session"]


class MockView:
    """What fault rules know of a mock cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self._cluster.topics

    def complete(self, body: Message, broker_id: int) -> Message:
        """Add the partitions of the fetch session."""
        return with_session(body, self._cluster.fetches, broker_id)


def with_session(body: Message, fetches: Fetches, broker_id: int) -> Message:
    """Return the request with the partitions of its session that it does not mention; the same
    object if it has none."""
    if not isinstance(body, FetchRequest) or not body.session_id or body.session_epoch <= 0:
        return body
    session = next(
        (each for each in fetches.sessions(broker_id) if each.session_id == body.session_id), None
    )
    if session is None:
        return body
    mentioned = {
        (topic.topic_id if session.by_id else topic.topic, index)
        for topic in body.topics
        for index in (each.partition for each in topic.partitions)
    } | {
        (topic.topic_id if session.by_id else topic.topic, index)
        for topic in body.forgotten_topics_data
        for index in topic.partitions
    }
    left = [each for key, each in session.partitions.items() if key not in mentioned]
    if not left:
        return body
    whole = copy.deepcopy(body)
    for each in left:
        whole.topics.append(_topic(each.position))
    return whole


def _topic(position: PartitionPosition) -> FetchTopic:
    partition = FetchPartition(
        partition=position.partition,
        current_leader_epoch=position.leader_epoch,
        fetch_offset=position.offset,
        last_fetched_epoch=position.last_fetched_epoch,
        partition_max_bytes=position.max_bytes,
    )
    return FetchTopic(
        topic=position.topic or "", topic_id=position.topic_id, partitions=[partition]
    )
