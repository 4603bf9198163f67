"""The topics that a group of consumers subscribes to, read from its members' metadata."""

from __future__ import annotations

from kproto.errors import KprotoError
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from mockbroker.simulation.groups.classic.classic_group import CONSUMER, Group

__all__ = ["subscribed_topics"]

_VERSION_BYTES = 2


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Return the topics of all members; None if the group is not of consumers, or if a member's
    metadata cannot be read."""
    if group.protocol_type != CONSUMER:
        return None
    if not group.members:
        return frozenset()
    if group.protocol_name is None:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        metadata = member.metadata(group.protocol_name)
        if len(metadata) < _VERSION_BYTES or metadata[0] >= 0x80:
            return None
        try:
            # Version 0 has the topics, and every version begins with its fields.
            read, _ = ConsumerProtocolSubscription.decode_from(metadata, 0, _VERSION_BYTES)
        except KprotoError:
            return None
        topics.update(read.topics)
    return frozenset(topics)
