"""The scripted sessions. Each is a function from a topic name of its own to its rounds.

``@session(45)`` plays it once for each version of api 45 that Kafka and the mock both serve;
``since`` leaves out versions that cannot carry what it says. Broker 1 is the controller; in the
frozen round broker 4 does not catch up, in the stopped round it is gone.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from kproto.messages import (
    ApiVersionsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from kproto.schema.versions import Versions
from tests.real.steps import (
    APPEND,
    BROKER,
    DELETE,
    PREFERRED,
    SET,
    SUBTRACT,
    TOPIC,
    UNCLEAN,
    Ask,
    CatchUp,
    Rounds,
    Script,
    Session,
    Settle,
    alter,
    change,
    cluster,
    create,
    describe,
    elect,
    listing,
    metadata,
    try_to_create,
)

__all__ = ["API_KEYS", "sessions"]

API_KEYS: Final = (18, 3, 60, 32, 44, 43, 45, 46, 19, 20)


class _Scripted(NamedTuple):
    api_key: int
    script: Script
    since: int
    until: int
    zookeeper: bool | None


_SCRIPTS: list[_Scripted] = []


def session(
    api_key: int, *, since: int = 0, until: int = 99, zookeeper: bool | None = None
) -> Callable[[Script], Script]:
    """Register a script; ``zookeeper`` says for which kind of cluster alone it makes sense."""

    def keep(script: Script) -> Script:
        _SCRIPTS.append(_Scripted(api_key, script, since, until, zookeeper))
        return script

    return keep


def sessions(served: Mapping[int, Versions], *, zookeeper: bool) -> list[Session]:
    """Every session for a cluster that serves these versions."""
    found = []
    for api_key, script, since, until, only in _SCRIPTS:
        if only is not None and only != zookeeper:
            continue
        for version in served[api_key]:
            if since <= version <= until:
                name = f"{script.__name__.replace('_', '-')}-v{version}"
                found.append(Session(name, api_key, version, script(name)))
    return found


# ---- 18 ApiVersions --------------------------------------------------------------------------


@session(18, until=2)
def api_versions_early(t: str) -> Rounds:
    return Rounds([Ask(ApiVersionsRequest())])


@session(18, since=3)
def api_versions(t: str) -> Rounds:
    software = {"client_software_name": "kproto", "client_software_version": "1.0"}
    return Rounds(
        [
            Ask(ApiVersionsRequest(**software)),
            Ask(ApiVersionsRequest(**software), broker_id=3),
            Ask(ApiVersionsRequest()),
            Ask(ApiVersionsRequest(client_software_name="a b", client_software_version="1")),
            Ask(ApiVersionsRequest(client_software_name="a", client_software_version="-")),
            Ask(ApiVersionsRequest(**software), version=3, forged=99),
        ]
    )


# ---- 3 Metadata ------------------------------------------------------------------------------


@session(3)
def metadata_of_topics(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 4], [4, 3]),
            create(f"{t}-b", [4], [3]),
            metadata(t),
            metadata(t, broker_id=3),
            metadata(t, t),
            metadata(f"{t}-b"),
            metadata(f"{t}-unknown"),
            metadata(f"{t}-unknown", t),
        ],
        stopped=[metadata(t), metadata(f"{t}-b"), metadata(t, broker_id=2)],
    )


@session(3)
def metadata_of_bad_names(t: str) -> Rounds:
    return Rounds([metadata(""), metadata("."), metadata("a b"), metadata("x" * 250)])


@session(3, since=1)
def metadata_of_none_and_all(t: str) -> Rounds:
    return Rounds([create(t, [3, 1]), metadata(t), metadata(), metadata(everything=True)])


@session(3, since=8)
def metadata_with_operations(t: str) -> Rounds:
    return Rounds([create(t, [3]), metadata(t, f"{t}-unknown", operations=True)])


@session(3, since=10)
def metadata_by_id(t: str) -> Rounds:
    unknown = uuid.UUID(int=77)

    def by_id(*ids: uuid.UUID) -> MetadataRequest:
        return MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=i) for i in ids])

    return Rounds(
        [
            create(t, [1, 2]),
            metadata(t),
            Ask(lambda ids: by_id(ids[t]), eventually=True),
            Ask(lambda ids: by_id(ids[t], unknown), eventually=True),
        ]
    )


# ---- 60 DescribeCluster ----------------------------------------------------------------------


@session(60)
def describe_cluster(t: str) -> Rounds:
    steps = [cluster(), cluster(include_cluster_authorized_operations=True)]
    return Rounds(steps, frozen=steps, stopped=steps)


@session(60, since=1)
def describe_cluster_endpoints(t: str) -> Rounds:
    return Rounds([cluster(endpoint_type=2), cluster(endpoint_type=3), cluster(endpoint_type=0)])


@session(60, since=2)
def describe_cluster_fenced(t: str) -> Rounds:
    steps = [cluster(include_fenced_brokers=True)]
    return Rounds(steps, stopped=steps)


# ---- 32 DescribeConfigs ----------------------------------------------------------------------


@session(32)
def configs_of_a_topic(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1], retention_ms="1000", cleanup_policy="compact"),
            describe((TOPIC, t), names=["retention.ms", "cleanup.policy", "no.such"]),
            replace(describe((TOPIC, t)), eventually=False),
            describe((TOPIC, t), names=["segment.bytes"], broker_id=3),
            replace(describe((TOPIC, t), names=[]), eventually=False),
        ]
    )


@session(32, since=1)
def config_synonyms(t: str) -> Rounds:
    every = replace(describe((TOPIC, t), synonyms=True), eventually=False)
    one = describe((TOPIC, t), names=["retention.ms"], synonyms=True)
    return Rounds([create(t, [1], retention_ms="5"), one, every])


@session(32)
def configs_of_nothing(t: str) -> Rounds:
    return Rounds(
        [
            describe((TOPIC, f"{t}-unknown")),
            describe((TOPIC, "")),
            describe((TOPIC, "a b")),
            describe((BROKER, "x")),
            describe((BROKER, "2"), names=["num.io.threads"]),
            describe((BROKER, "9")),
            describe((BROKER, "")),
            describe(),
        ]
    )


@session(32, since=1)
def configs_of_a_broker(t: str) -> Rounds:
    names = ["num.io.threads", "auto.create.topics.enable", "num.partitions", "log.retention.ms"]
    return Rounds(
        [
            describe((BROKER, "1"), names=names),
            describe((BROKER, "3"), names=names, synonyms=True, broker_id=3),
        ]
    )


# ---- 44 IncrementalAlterConfigs --------------------------------------------------------------


@session(44)
def config_set_and_deleted(t: str) -> Rounds:
    name = "retention.ms"
    return Rounds(
        [
            create(t, [1]),
            change((TOPIC, t, [(name, SET, "7")])),
            describe((TOPIC, t), names=[name], synonyms=True),
            change((TOPIC, t, [(name, SET, "8")]), validate_only=True),
            describe((TOPIC, t), names=[name]),
            change((TOPIC, t, [(name, DELETE, None)])),
            describe((TOPIC, t), names=[name]),
            change((TOPIC, t, [(name, DELETE, None)])),
            change((TOPIC, t, [])),
        ]
    )


@session(44)
def config_lists(t: str) -> Rounds:
    policy = "cleanup.policy"
    replicas = "leader.replication.throttled.replicas"
    return Rounds(
        [
            create(t, [1]),
            change((TOPIC, t, [(policy, APPEND, "compact")])),
            describe((TOPIC, t), names=[policy]),
            change((TOPIC, t, [(policy, SUBTRACT, "delete")])),
            describe((TOPIC, t), names=[policy]),
            change((TOPIC, t, [(replicas, SET, "0:1,0:2")])),
            change((TOPIC, t, [(replicas, APPEND, "0:2,0:3")])),
            describe((TOPIC, t), names=[replicas]),
            change((TOPIC, t, [(replicas, SET, "*")])),
            describe((TOPIC, t), names=[replicas]),
        ]
    )


@session(44)
def config_refusals(t: str) -> Rounds:
    name = "retention.ms"
    return Rounds(
        [
            create(t, [1]),
            change((TOPIC, t, [(name, SET, "soon")])),
            change((TOPIC, t, [(name, SET, "-2")])),
            change((TOPIC, t, [("no.such.config", SET, "1")])),
            change((TOPIC, t, [(name, APPEND, "1")])),
            change((TOPIC, t, [(name, SET, None)])),
            change((TOPIC, t, [(name, SET, "1"), (name, SET, "2")])),
            change((TOPIC, t, [(name, 9, "1")])),
            change((TOPIC, f"{t}-unknown", [(name, SET, "1")])),
            change((TOPIC, "a b", [(name, SET, "1")])),
            change((TOPIC, t, [(name, SET, "1")]), (TOPIC, t, [(name, SET, "2")])),
            change((TOPIC, f"{t}-unknown", [(name, SET, "1")]), (TOPIC, t, [(name, SET, "3")])),
            change((BROKER, "x", [("num.io.threads", SET, "2")])),
            change((BROKER, "1", [("node.id", SET, "2")])),
            change(),
            describe((TOPIC, t), names=[name]),
        ]
    )


@session(44)
def config_throttles(t: str) -> Rounds:
    """What a reassignment tool does: a rate on a broker, and takes it off again."""
    rate = "leader.replication.throttled.rate"
    return Rounds(
        [
            change((BROKER, "1", [(rate, SET, "1000000")])),
            describe((BROKER, "1"), names=[rate]),
            change((BROKER, "1", [(rate, DELETE, "")])),
            describe((BROKER, "1"), names=[rate]),
            change((BROKER, "", [(rate, SET, "5")])),
            describe((BROKER, "")),
            change((BROKER, "", [(rate, DELETE, "")])),
            describe((BROKER, "")),
        ]
    )


# ---- 43 ElectLeaders -------------------------------------------------------------------------


@session(43)
def election_not_needed(t: str) -> Rounds:
    return Rounds([create(t, [1, 2], [2, 1]), elect(PREFERRED, (t, [0, 1])), metadata(t)])


@session(43)
def election_of_unknown(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1]),
            elect(PREFERRED, (f"{t}-unknown", [0])),
            elect(PREFERRED, (t, [1])),
            elect(PREFERRED, (t, [-1])),
            elect(PREFERRED, (t, [])),
            elect(PREFERRED),
        ]
    )


@session(43)
def election_after_reorder(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2, 3], [2, 3, 1]),
            alter((t, 0, [3, 1, 2])),
            metadata(t),
            elect(PREFERRED, (t, [0, 1])),
            metadata(t),
            elect(PREFERRED, (t, [0])),
        ]
    )


@session(43)
def election_named_twice(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [2, 1])),
            elect(PREFERRED, (t, [0, 0])),
            metadata(t),
        ]
    )


@session(43, since=1)
def election_of_unknown_type(t: str) -> Rounds:
    return Rounds([create(t, [1]), elect(7, (t, [0])), elect(7, everything=True)])


@session(43, since=1)
def unclean_election_not_needed(t: str) -> Rounds:
    return Rounds([create(t, [1, 2]), elect(UNCLEAN, (t, [0, 4]), (f"{t}-unknown", [0]))])


@session(43)
def election_of_everything(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 3]),
            alter((t, 0, [2, 1]), (t, 1, [2, 3])),
            elect(PREFERRED, everything=True),
            metadata(t),
        ]
    )


@session(43)
def election_of_one_not_in_sync(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [4, 1])),
            elect(PREFERRED, (t, [0])),
            metadata(t),
            alter((t, 0, None)),
            elect(PREFERRED, (t, [0])),
            metadata(t),
        ],
    )


@session(43)
def election_while_stopped(t: str) -> Rounds:
    return Rounds(
        [create(t, [4, 1], [1, 4])],
        stopped=[
            metadata(t),
            elect(PREFERRED, (t, [0])),
            elect(PREFERRED, (t, [1])),
            elect(PREFERRED, (t, [0, 1])),
            metadata(t),
        ],
    )


@session(43)
def election_while_offline(t: str) -> Rounds:
    return Rounds(
        [create(t, [4], [1])],
        stopped=[metadata(t), elect(PREFERRED, (t, [0, 1])), metadata(t)],
    )


@session(43, since=1)
def unclean_election_while_stopped(t: str) -> Rounds:
    return Rounds(
        [create(t, [4], [1])],
        stopped=[elect(UNCLEAN, (t, [0, 1])), metadata(t)],
    )


@session(43, since=1, zookeeper=False)
def unclean_election_of_an_added_replica(t: str) -> Rounds:
    return Rounds(
        [create(t, [4])],
        stopped=[
            alter((t, 0, [4, 1])),
            listing((t, [0])),
            elect(UNCLEAN, (t, [0])),
            metadata(t),
            listing((t, [0])),
            elect(UNCLEAN, (t, [0])),
            elect(PREFERRED, (t, [0])),
        ],
    )


# ---- 45 AlterPartitionReassignments ----------------------------------------------------------


@session(45)
def reassign_to_another_broker(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [2, 3])),
            Settle(),
            listing((t, [0])),
            metadata(t),
        ]
    )


@session(45)
def reassign_everything_elsewhere(t: str) -> Rounds:
    return Rounds([create(t, [1], [2]), alter((t, 0, [2]), (t, 1, [4, 1])), Settle(), metadata(t)])


@session(45)
def pure_reorder(t: str) -> Rounds:
    return Rounds([create(t, [1, 2, 3]), alter((t, 0, [3, 2, 1])), listing((t, [0])), metadata(t)])


@session(45)
def pure_removal(t: str) -> Rounds:
    return Rounds([create(t, [1, 2, 3]), alter((t, 0, [1, 3])), Settle(), metadata(t)])


@session(45)
def removal_of_the_leader(t: str) -> Rounds:
    return Rounds([create(t, [1, 2, 3]), alter((t, 0, [2, 3])), Settle(), metadata(t)])


@session(45)
def growth(t: str) -> Rounds:
    return Rounds([create(t, [2]), alter((t, 0, [2, 1, 3])), Settle(), metadata(t)])


@session(45)
def same_replicas(t: str) -> Rounds:
    return Rounds([create(t, [2, 1]), alter((t, 0, [2, 1])), listing((t, [0])), metadata(t)])


@session(45)
def bad_targets(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [])),
            alter((t, 0, [1, 1])),
            alter((t, 0, [1, 9])),
            alter((t, 0, [-1])),
            alter((t, 0, [9, -3, 9])),
            alter((t, 0, [2, 9, 2])),
            metadata(t),
        ]
    )


@session(45)
def unknown_partitions(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((f"{t}-unknown", 0, [1])),
            alter((t, 1, [1])),
            alter((t, -1, [1])),
            alter((f"{t}-unknown", 0, None)),
            alter((t, 7, None)),
            alter(("", 0, [1])),
            alter((t, 7, [])),
        ]
    )


@session(45)
def one_bad_row_among_good_ones(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 1], [1, 2]),
            alter((t, 0, [2, 1]), (t, 9, [1]), (t, 1, [9]), (t, 2, [2])),
            Settle(),
            metadata(t),
        ]
    )


@session(45)
def nothing_asked(t: str) -> Rounds:
    none = alter((t, 0, [1]))
    none.body.topics[0].partitions = []
    return Rounds([create(t, [1]), alter(), none, metadata(t)])


@session(45)
def named_twice(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2, 3], [1, 2, 3]),
            alter((t, 0, [3, 2, 1]), (t, 0, [2, 1, 3])),
            metadata(t),
            alter((t, 1, [1, 2]), (t, 1, None)),
            Settle(),
            metadata(t),
        ]
    )


@session(45)
def named_twice_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [2, 4]), (t, 0, [1, 3])),
            CatchUp(t, 0, 3),
            listing((t, [0])),
            metadata(t),
        ],
    )


@session(45)
def topic_named_twice(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [1, 2]),
            alter((t, 0, [2, 1]), (f"{t}-unknown", 0, [1]), (t, 1, [2, 1])),
            metadata(t),
        ]
    )


@session(45)
def cancel_of_nothing(t: str) -> Rounds:
    return Rounds([create(t, [1, 2]), alter((t, 0, None)), metadata(t)])


@session(45)
def cancel_and_start_together(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2], [1, 2])],
        frozen=[
            alter((t, 0, [1, 4])),
            alter((t, 0, None), (t, 1, [2, 4])),
            listing((t, [0, 1])),
            metadata(t),
            alter((t, 1, None), (t, 0, None)),
            metadata(t),
        ],
    )


@session(45)
def in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2, 3])],
        frozen=[
            alter((t, 0, [2, 3, 4])),
            listing((t, [0])),
            metadata(t),
            alter((t, 0, None)),
            listing((t, [0])),
            metadata(t),
        ],
    )


@session(45)
def in_progress_then_done(t: str) -> Rounds:
    """The frozen broker catches up between the rounds."""
    return Rounds(
        [create(t, [1, 2])],
        frozen=[alter((t, 0, [4, 2])), listing((t, [0])), metadata(t)],
        stopped=[listing((t, [0])), metadata(t)],
    )


@session(45)
def growth_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1])],
        frozen=[
            alter((t, 0, [1, 3, 4])),
            CatchUp(t, 0, 3),
            listing((t, [0])),
            metadata(t),
            alter((t, 0, None)),
            metadata(t),
        ],
    )


@session(45)
def retargeted(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [2, 4])),
            alter((t, 0, [3, 4])),
            CatchUp(t, 0, 3),
            listing((t, [0])),
            metadata(t),
            alter((t, 0, [4, 1])),
            listing((t, [0])),
            metadata(t),
            alter((t, 0, None)),
            listing((t, [0])),
            metadata(t),
        ],
    )


@session(45)
def retargeted_to_where_it_was(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [1, 4])),
            listing((t, [0])),
            alter((t, 0, [1, 2])),
            listing((t, [0])),
            metadata(t),
        ],
    )


@session(45)
def retargeted_without_the_laggard(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [2, 4])),
            alter((t, 0, [2, 3])),
            CatchUp(t, 0, 3),
            listing((t, [0])),
            metadata(t),
        ],
    )


@session(45)
def started_twice(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [2, 4])),
            alter((t, 0, [2, 4])),
            listing((t, [0])),
            metadata(t),
            alter((t, 0, None)),
            alter((t, 0, None)),
        ],
    )


@session(45)
def swap_with_the_laggard(t: str) -> Rounds:
    """Nothing stays but the frozen broker: a cancellation leaves what there was."""
    return Rounds(
        [create(t, [1], [2])],
        frozen=[
            alter((t, 0, [4]), (t, 1, [4, 3])),
            CatchUp(t, 1, 3),
            listing((t, [0, 1])),
            metadata(t),
            alter((t, 0, None), (t, 1, None)),
            metadata(t),
        ],
    )


@session(45)
def leader_stays_while_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [4, 3])),
            CatchUp(t, 0, 3),
            metadata(t),
            elect(PREFERRED, (t, [0])),
            alter((t, 0, None)),
            metadata(t),
        ],
    )


@session(45)
def to_a_stopped_broker(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        stopped=[
            alter((t, 0, [1, 4])),
            listing((t, [0])),
            metadata(t),
            alter((t, 0, None)),
            metadata(t),
        ],
    )


@session(45)
def away_from_a_stopped_broker(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 4], [4, 2]), create(f"{t}-b", [4])],
        stopped=[
            metadata(t),
            alter((t, 0, [1, 3]), (t, 1, [2])),
            Settle(),
            metadata(t),
            alter((f"{t}-b", 0, [1])),
            listing((f"{t}-b", [0])),
            metadata(f"{t}-b"),
            alter((f"{t}-b", 0, None)),
            metadata(f"{t}-b"),
        ],
    )


@session(45)
def beside_a_stopped_broker(t: str) -> Rounds:
    """Broker 4 was there before, is out of sync and is to stay (KAFKA-19975)."""
    return Rounds(
        [create(t, [1, 4]), create(f"{t}-b", [1, 2, 4])],
        stopped=[
            alter((t, 0, [2, 4])),
            CatchUp(t, 0, 2),
            listing((t, [0])),
            metadata(t),
            alter((f"{t}-b", 0, [2, 4])),
            listing((f"{t}-b", [0])),
            metadata(f"{t}-b"),
            alter((t, 0, None), (f"{t}-b", 0, None)),
            metadata(t),
            metadata(f"{t}-b"),
        ],
    )


@session(45)
def cancel_that_would_need_an_unclean_election(t: str) -> Rounds:
    return Rounds(
        [create(t, [4])],
        frozen=[],
        stopped=[alter((t, 0, [2])), alter((t, 0, None)), listing((t, [0])), metadata(t)],
    )


@session(45, since=1)
def guard(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [1, 2]),
            alter((t, 0, [1, 2, 3]), factor_may_change=False),
            alter((t, 0, [1]), factor_may_change=False),
            alter((t, 0, [2, 1]), (t, 1, [3]), factor_may_change=False),
            alter((t, 1, [2, 3]), factor_may_change=False),
            Settle(),
            metadata(t),
            alter((t, 0, None), factor_may_change=False),
            alter((t, 0, []), factor_may_change=False),
            alter((f"{t}-unknown", 0, [1]), factor_may_change=False),
            alter(factor_may_change=False),
        ]
    )


@session(45, since=1)
def guard_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [1, 3, 4])),
            alter((t, 0, [1, 2]), factor_may_change=False),
            alter((t, 0, [1, 2, 4]), factor_may_change=False),
            listing((t, [0])),
            metadata(t),
            alter((t, 0, None), factor_may_change=False),
            metadata(t),
        ],
    )


@session(45, zookeeper=True)
def not_the_controller(t: str) -> Rounds:
    rate = "leader.replication.throttled.rate"
    create_elsewhere = Ask(try_to_create(f"{t}-b", [1]).body, broker_id=2)
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [2, 1]), (f"{t}-unknown", 1, []), broker_id=2),
            alter(broker_id=2),
            listing((t, [0]), broker_id=2),
            listing(everything=True, broker_id=2),
            elect(PREFERRED, (t, [0]), broker_id=2),
            create_elsewhere,
            Ask(DeleteTopicsRequest(topic_names=[t]), version=5, broker_id=2),
            change((BROKER, "2", [(rate, DELETE, "")]), broker_id=2),
            metadata(t),
        ]
    )


@session(45, zookeeper=False)
def forwarded(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [2, 1]), (t, 1, []), broker_id=2),
            listing((t, [0]), broker_id=3),
            elect(PREFERRED, (t, [0]), broker_id=2),
            metadata(t),
        ]
    )


# ---- 46 ListPartitionReassignments -----------------------------------------------------------


@session(46)
def list_nothing(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            listing(everything=True),
            listing(),
            listing((t, [0])),
            listing((t, [])),
            listing((t, [5, -1])),
            listing((f"{t}-unknown", [0])),
        ]
    )


@session(46)
def list_some(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2], [2, 3], [3, 1]), create(f"{t}-b", [1])],
        frozen=[
            alter((t, 0, [1, 4]), (t, 2, [3, 4]), (f"{t}-b", 0, [1, 4])),
            listing((t, [0])),
            listing((t, [2, 1, 0])),
            listing((t, [0, 0])),
            listing((f"{t}-b", [0]), (t, [1, 2])),
            listing((t, [0]), (f"{t}-unknown", [0]), (t, [2])),
            listing(everything=True),
            alter((t, 0, None), (t, 2, None), (f"{t}-b", 0, None)),
            listing(everything=True),
        ],
    )


# ---- 19 CreateTopics, 20 DeleteTopics --------------------------------------------------------


@session(19, since=2)
def topics_created(t: str) -> Rounds:
    return Rounds(
        [
            try_to_create(t, [1, 2], [2, 3]),
            try_to_create(t, [1]),
            try_to_create(f"{t}-dup", [1, 1]),
            try_to_create(f"{t}-far", [9]),
            try_to_create(f"{t}-none", []),
            try_to_create(f"{t}-uneven", [1, 2], [3]),
            try_to_create(f"{t} bad", [1]),
            try_to_create(f"{t}-config", [1], retention_ms="soon"),
            try_to_create(f"{t}-config", [1], no_such="1"),
            metadata(t),
        ]
    )


@session(20, since=1, until=5)
def topics_deleted(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            metadata(t),
            Ask(DeleteTopicsRequest(topic_names=[t, f"{t}-unknown"], timeout_ms=30000)),
            metadata(t),
            alter((t, 0, [1])),
        ]
    )
