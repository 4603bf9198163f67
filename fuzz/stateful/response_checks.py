"""What an answer must contain, and what a refused request must not change, each with its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fuzz.stateful.answers import error_codes
from fuzz.stateful.history import BrokerView
from fuzz.stateful.wire import PendingRequest
from fuzz.stateful.world import Facts, World
from kproto.error_codes import ErrorCode
from kproto.schema.versions import Versions
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition, TopicPartition

__all__ = [
    "cancelled_is_as_before",
    "guard_compares_factors",
    "listing_is_the_controllers",
    "metadata_is_what_the_broker_knows",
    "reassignments_survive",
    "refused_changes_nothing",
    "says_unsupported",
    "versions_are_those_served",
]

_LOGGED: Final = frozenset({"ZnodeWritten", "Warned", "ElectionEnqueued", "ElectionProcessed"})
"""Actions that a ZooKeeper controller may log for a request it refuses: reading znodes, cleaning up
/admin/reassign_partitions, and an election without effect."""
_IN_DOUBT: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Errors that leave open whether the change was made. The first FindCoordinator creates an internal
topic, and answers that there is no coordinator yet."""


def refused_changes_nothing(world: World, before: Facts, request: PendingRequest) -> None:
    """A refused request leaves topics, configs, brokers, ACLs and elections unchanged; one refused
    in part leaves the refused topics and partitions unchanged (KIP-4, KIP-455: errors are per
    partition).

    ``_IN_DOUBT`` promise nothing: the change may have been made, or may be made later.
    """
    codes = list(error_codes(request.answer))
    if not codes or _IN_DOUBT.intersection(codes):
        return
    if all(codes):
        after = world.facts()
        assert after.topics == before.topics, (request, codes)
        assert after.configs == before.configs, (request, codes)
        assert after.brokers == before.brokers, (request, codes)
        assert (after.controller, after.acls) == (before.controller, before.acls), (request, codes)
        assert after.elections == before.elections, (request, codes)
        done = [each for each in world.cluster.log.since(before.offset) if each.kind not in _LOGGED]
        assert not done, (request, codes, done)
    for name in _refused_topics(request.answer):
        assert world.cluster.topics.get(name) == before.topics.get(name), (request, name)
    for tp in _refused_partitions(request.answer):
        assert _partition(world.cluster.topics, tp) == _partition(before.topics, tp), (request, tp)


def _refused_topics(answer: Any) -> list[str]:
    rows = [*_list(answer, "topics"), *_list(answer, "responses"), *_list(answer, "results")]
    return [
        row.name
        for row in rows
        if getattr(row, "error_code", 0) and getattr(row, "name", None) is not None
    ]


def _refused_partitions(answer: Any) -> list[TopicPartition]:
    """Return the refused partitions of AlterPartitionReassignments."""
    return [
        (topic.name, row.partition_index)
        for topic in _list(answer, "responses")
        if hasattr(topic, "name")
        for row in _list(topic, "partitions")
        if getattr(row, "error_code", 0) and hasattr(row, "partition_index")
    ]


def _list(thing: Any, name: str) -> Sequence[Any]:
    found = getattr(thing, name, None)
    return found if isinstance(found, list) else ()


def _partition(topics: Any, tp: TopicPartition) -> Partition | None:
    topic = topics.get(tp[0])
    return None if topic is None else topic.partition(tp[1])


def says_unsupported(request: PendingRequest) -> None:
    """The answer has error 35 wherever it has an error field (KIP-35)."""
    codes = set(error_codes(request.answer))
    assert not codes or (ErrorCode.UNSUPPORTED_VERSION in codes and codes <= {0, 35}), request


def guard_compares_factors(before: Facts, tp: TopicPartition, target: Sequence[int]) -> None:
    """A reassignment accepted with AllowReplicationFactorChange=false has as many replicas as the
    partition, or as the target of a reassignment in progress (KIP-860)."""
    was = _partition(before.topics, tp)
    assert was is not None, tp
    assert len(target) == len(was.target or was.replicas), (tp, target, was)


def cancelled_is_as_before(world: World, before: Facts, tp: TopicPartition) -> None:
    """A cancelled reassignment is over and its added replicas are gone (KIP-455). In the drafts of
    KIP-455 those that had joined the ISR stay replicas; with KIP-236 the original state is
    restored."""
    was, now = _partition(before.topics, tp), world.cluster.topics.partition(*tp)
    if was is None or not was.reassigning:
        return
    assert not now.reassigning, (tp, was, now)
    if world.reassignment.startswith("kip-455"):
        joined = [each for each in was.target or () if each in was.isr]
        assert set(now.replicas) == {*was.replicas, *joined}, (tp, was, now)
    elif world.reassignment == "kraft" or world.reassignment.startswith("zookeeper"):
        assert set(now.replicas) == set(was.replicas) - set(was.adding), (tp, was, now)
        assert not set(was.adding) & set(now.isr) or now.leader == NO_LEADER, (tp, was, now)


def versions_are_those_served(world: World, answer: Any, version: int) -> None:
    """ApiVersions lists what is accepted (KIP-35); at an unknown version it has error 35 and its
    own row, if any (KIP-511)."""
    shown = {row.api_key: Versions(row.min_version, row.max_version) for row in answer.api_keys}
    if answer.error_code:
        expected = {18: world.served(18)} if world.mock.profile.fallback_row else {}
        assert shown == expected, shown
        return
    assert shown == dict(world.mock.served), (version, shown)


def listing_is_the_controllers(world: World, answer: Any) -> None:
    """ListPartitionReassignments of everything shows what is in progress on the controller at this
    moment (KIP-455, KIP-860)."""
    listed = {
        (topic.name, row.partition_index): tuple(row.replicas)
        for topic in answer.topics
        for row in topic.partitions
    }
    going = {
        (name, each.index): each.replicas
        for name, topic in world.cluster.topics.items()
        for each in topic.partitions
        if each.reassigning
    }
    assert listed == going, (listed, going)


def metadata_is_what_the_broker_knows(
    world: World, known: BrokerView, answer: Any, version: int
) -> None:
    """Metadata of every topic shows the brokers, the controller, and each partition's leader,
    replicas, ISR and offline replicas, as this broker knows them (KIP-4; KIP-112 for offline
    replicas; KIP-320 for the leader epoch). Version 0 leaves out replicas that are not among the
    brokers."""
    release = world.mock.profile.line
    live = {each.broker_id for each in known.brokers.values() if each.live}
    assert {each.node_id for each in answer.brokers} == live
    if version >= 1:
        forwards = world.mock.profile.forwarding
        named = live if forwards else live & {known.controller}
        assert answer.controller_id in (named or {-1}), (answer.controller_id, known)
    assert {each.name for each in answer.topics} == set(known.topics)
    for topic in answer.topics:
        partitions = known.topics[topic.name].partitions
        assert [row.partition_index for row in topic.partitions] == list(range(len(partitions)))
        for row, each in zip(topic.partitions, partitions, strict=True):
            about = (topic.name, row, each)
            shown = live if version == 0 else set(known.brokers)
            assert row.leader_id == each.leader, about
            assert row.replica_nodes == [r for r in each.replicas if r in shown], about
            assert row.isr_nodes == [r for r in each.isr if r in shown], about
            if version >= 5:
                assert row.offline_replicas == [r for r in each.replicas if r not in live], about
            offline = each.leader == NO_LEADER or each.leader not in live
            # These releases treat an absent leader as one without a listener.
            no_listener = offline and (2, 4) <= release <= (2, 6)
            if version >= 7:
                epoch = -1 if no_listener and release <= (2, 5) else each.leader_epoch
                assert row.leader_epoch == epoch, about
            missing = version == 0 and set(each.replicas) - live
            code = 72 if no_listener and version >= 6 else 5 if offline else 9 if missing else 0
            assert row.error_code == code, about


def reassignments_survive(world: World, before: Facts) -> None:
    """A new controller continues or has completed every reassignment, since accepted requests are
    on record (KIP-455, "controller failover"; KIP-236).

    Exceptions: before Kafka 2.4 the topic znode does not list adding replicas, only
    /admin/reassign_partitions does; and in the older draft of KIP-455 the target shrinks on the
    way, so that it is not known.
    """
    if world.reassignment in ("zookeeper-0.10", "zookeeper-2.1", "zookeeper-2.3", "kip-455-old"):
        world.model.goals.clear()
        return
    planned = any("reassign" in path or "cancel" in path for path in world.cluster.state.znodes)
    for name, topic in before.topics.items():
        for was in topic.partitions:
            now = world.cluster.topics.partition(name, was.index)
            if was.reassigning and not planned:
                there = now.target if now.reassigning else now.replicas
                assert there == was.target, (name, was, now)
