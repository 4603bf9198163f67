"""What is asked of a cluster with an authorizer, and by whom. Data only.

``admin`` may everything, ``alice`` nothing, ``carol`` ALTER and ``dave`` DESCRIBE the cluster.
``bob`` may what a session grants him, about the topics that it made.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from kproto.messages import (
    CreateAclsRequest,
    CreatePartitionsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
)
from kproto.messages.create_acls_request import AclCreation
from kproto.messages.create_partitions_request import CreatePartitionsTopic
from kproto.messages.delete_acls_request import DeleteAclsFilter
from kproto.messages.delete_topics_request import DeleteTopicState
from kproto.messages.describe_producers_request import TopicRequest as ProducersOf
from kproto.messages.describe_topic_partitions_request import TopicRequest
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.schema.versions import Versions
from mockbroker.simulation.security.authorizer import (
    CLUSTER_NAME,
    AclOperation,
    PatternType,
    ResourceType,
)
from tests.real.steps import (
    BROKER,
    PREFERRED,
    SET,
    TOPIC,
    UNCLEAN,
    Ask,
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

__all__ = ["PREAMBLE", "Said", "SecuredSession", "secured_sessions"]


class Said(NamedTuple):
    """Who asks what."""

    who: str
    ask: Ask


@dataclass(frozen=True)
class SecuredSession:
    """``name`` is the prefix of every topic it makes; ``api_key`` is asked at ``version``."""

    name: str
    api_key: int
    version: int
    steps: list[Said]


Op = AclOperation
Script: TypeAlias = Callable[[str], list[Said]]
ADMIN, ALICE, BOB, CAROL, DAVE = "admin", "alice", "bob", "carol", "dave"
LOGGER, CLIENT_METRICS, GROUP_CONFIG = 8, 16, 32
ACL_VERSION: Final = 3


def rule(
    who: str, operation: Op, name: str, kind: ResourceType = ResourceType.TOPIC, *,
    pattern: PatternType = PatternType.LITERAL,
) -> AclCreation:  # fmt: skip
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=f"User:{who}",
        host="*",
        operation=operation,
        permission_type=3,
    )


def grant(*rules: AclCreation) -> Said:
    """The superuser allows it."""
    return Said(ADMIN, Ask(CreateAclsRequest(creations=list(rules)), ACL_VERSION, refusable=False))


PREAMBLE: Final = (
    grant(
        rule(CAROL, Op.ALTER, CLUSTER_NAME, ResourceType.CLUSTER),
        rule(DAVE, Op.DESCRIBE, CLUSTER_NAME, ResourceType.CLUSTER),
    ),
)

_SCRIPTS: list[tuple[int, int, int, Script]] = []


def session(api_key: int, *, since: int = 0, until: int = 99) -> Callable[[Script], Script]:
    """Register a script, to be played at each version that both sides serve."""

    def keep(script: Script) -> Script:
        _SCRIPTS.append((api_key, since, until, script))
        return script

    return keep


def secured_sessions(served: Mapping[int, Versions]) -> list[SecuredSession]:
    found = []
    for api_key, since, until, script in _SCRIPTS:
        for version in served[api_key]:
            if since <= version <= until:
                name = f"{script.__name__.replace('_', '-')}-v{version}"
                found.append(SecuredSession(name, api_key, version, script(name)))
    return found


def made(topic: str, partitions: int = 1) -> Said:
    return Said(ADMIN, create(topic, *[[1]] * partitions))


# ---- on the cluster ------------------------------------------------------------------------------


@session(45)
def alter_reassignments(t: str) -> list[Said]:
    return [
        made(t, 2),
        Said(ALICE, alter((t, 0, [1]), (t, 1, None), (f"{t}-unknown", 0, [7]))),
        Said(ALICE, alter()),
        Said(DAVE, alter((t, 0, [1]))),
        Said(ADMIN, metadata(t)),
        Said(CAROL, alter((t, 0, [1]), (t, 1, None), (f"{t}-unknown", 0, [1]))),
    ]


@session(46)
def list_reassignments(t: str) -> list[Said]:
    return [
        made(t),
        *(
            Said(who, ask)
            for who in (ALICE, CAROL, DAVE)
            for ask in (listing((t, [0, 3]), ("x", [1])), listing(everything=True), listing())
        ),
    ]


@session(43)
def elect_preferred(t: str) -> list[Said]:
    asks = elect(PREFERRED, (t, [0, 9]), (f"{t}-unknown", [0]))
    return [
        made(t),
        grant(rule(BOB, Op.ALTER, t)),
        *(Said(who, asks) for who in (ALICE, BOB, DAVE, CAROL)),
        Said(ALICE, elect(PREFERRED, everything=True)),
        Said(ALICE, elect(PREFERRED)),
    ]


@session(43, since=1)
def elect_unclean(t: str) -> list[Said]:
    return [made(t), Said(ALICE, elect(UNCLEAN, (t, [0]))),
            Said(ALICE, elect(UNCLEAN, everything=True))]  # fmt: skip


@session(60)
def describe_the_cluster(t: str) -> list[Said]:
    asks = (cluster(), cluster(include_cluster_authorized_operations=True))
    return [Said(who, ask) for who in (ALICE, CAROL, DAVE, ADMIN) for ask in asks]


@session(60, since=1)
def describe_the_cluster_elsewhere(t: str) -> list[Said]:
    return [Said(ALICE, cluster(endpoint_type=2)), Said(ALICE, cluster(endpoint_type=7))]


@session(35, since=1)
def describe_log_directories(t: str) -> list[Said]:
    return [made(t), Said(ALICE, Ask(DescribeLogDirsRequest(topics=None)))]


# ---- topics --------------------------------------------------------------------------------------


def twice(topic: str) -> Ask:
    one = try_to_create(topic, [1])
    one.body.topics += [*one.body.topics, *try_to_create(f"{topic}-once", [1]).body.topics]
    return one


@session(19)
def create_topics(t: str) -> list[Said]:
    return [
        Said(ALICE, try_to_create(t, [1])),
        Said(ALICE, try_to_create(f"{t} bad", [1])),
        Said(ALICE, twice(f"{t}-dup")),
        Said(CAROL, try_to_create(t, [1])),
        made(t),
        Said(ALICE, try_to_create(t, [1])),
        grant(rule(BOB, Op.CREATE, f"{t}-bobs", pattern=PatternType.PREFIXED)),
        Said(BOB, try_to_create(f"{t}-bobs-a", [1], retention_ms="5")),
        Said(BOB, try_to_create(f"{t}-bobs-a", [1])),
        Said(BOB, try_to_create(f"{t}-bobs-b", [1, 1])),
        Said(BOB, try_to_create(f"{t}-alices", [1])),
    ]


def by_name(*names: str) -> Ask:
    return Ask(DeleteTopicsRequest(topic_names=list(names), timeout_ms=30_000))


@session(20, until=5)
def delete_topics(t: str) -> list[Said]:
    return [
        made(t),
        Said(ALICE, by_name(t, f"{t}-unknown")),
        Said(ALICE, by_name(t, t, f"{t}-unknown")),
        grant(rule(BOB, Op.DESCRIBE, t, pattern=PatternType.PREFIXED)),
        Said(BOB, by_name(t, f"{t}-unknown")),
        Said(ADMIN, metadata(t)),
        grant(rule(BOB, Op.DELETE, t)),
        Said(BOB, by_name(t)),
        Said(ADMIN, metadata(t)),
    ]


@session(20, since=6)
def delete_topics_by_id(t: str) -> list[Said]:
    unknown = uuid.UUID(int=77)

    def by_id(ids: Mapping[str, uuid.UUID]) -> DeleteTopicsRequest:
        rows = [DeleteTopicState(name=None, topic_id=i) for i in (ids[t], ids[f"{t}-b"], unknown)]
        return DeleteTopicsRequest(topics=rows, timeout_ms=30_000)

    names = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=t), DeleteTopicState(name=f"{t}-unknown")], timeout_ms=30_000
    )
    return [
        made(t),
        made(f"{t}-b"),
        Said(ADMIN, metadata(t, f"{t}-b", version=12)),
        Said(ALICE, Ask(names)),
        Said(ALICE, Ask(by_id)),
        grant(rule(BOB, Op.DESCRIBE, t)),
        Said(BOB, Ask(by_id)),
        Said(BOB, Ask(names)),
        grant(rule(BOB, Op.DELETE, t)),
        Said(BOB, Ask(by_id)),
        Said(ADMIN, metadata(t, f"{t}-b", version=12)),
    ]


@session(37)
def add_partitions(t: str) -> list[Said]:
    def to(count: int, *names: str) -> Ask:
        rows = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name in names]
        return Ask(CreatePartitionsRequest(topics=rows, timeout_ms=30_000))

    return [
        made(t),
        Said(ALICE, to(2, t, f"{t}-unknown")),
        Said(ALICE, to(2, t, t, f"{t}-unknown")),
        Said(CAROL, to(2, t)),
        grant(rule(BOB, Op.ALTER, t)),
        Said(BOB, to(2, t, f"{t}-unknown")),
        Said(ADMIN, metadata(t)),
    ]


# ---- configs -------------------------------------------------------------------------------------


def elsewhere(t: str) -> list[tuple[int, str]]:
    return [(TOPIC, t), (TOPIC, f"{t}-unknown"), (TOPIC, ""), (BROKER, "1"), (BROKER, ""),
            (BROKER, "9"), (LOGGER, "1"), (CLIENT_METRICS, "m"), (GROUP_CONFIG, "g")]  # fmt: skip


@session(32)
def describe_configs(t: str) -> list[Said]:
    return [
        made(t),
        Said(ALICE, describe(*elsewhere(t), names=["retention.ms"])),
        grant(rule(BOB, Op.ALTER_CONFIGS, t)),
        Said(BOB, describe((TOPIC, f"{t}-unknown"), (TOPIC, t), names=["retention.ms"])),
        Said(CAROL, describe((BROKER, "1"), names=["num.io.threads"])),
    ]


@session(44)
def change_configs(t: str) -> list[Said]:
    to_5 = [("retention.ms", SET, "5")]
    return [
        made(t),
        Said(ALICE, change(*((kind, name, to_5) for kind, name in elsewhere(t)))),
        grant(rule(BOB, Op.ALTER_CONFIGS, t)),
        Said(BOB, change((TOPIC, f"{t}-unknown", to_5), (TOPIC, t, to_5))),
        Said(BOB, describe((TOPIC, t), names=["retention.ms"])),
    ]


# ---- what is told of topics ----------------------------------------------------------------------


@session(3, since=1)
def see_topics(t: str) -> list[Said]:
    return [
        made(t),
        made(f"{t}-b"),
        Said(ALICE, metadata(t, f"{t}-unknown", "a b")),
        Said(ALICE, metadata(everything=True)),
        grant(rule(BOB, Op.READ, t), rule(BOB, Op.DESCRIBE, f"{t}-unknown")),
        Said(BOB, metadata(t, f"{t}-b", f"{t}-unknown")),
        Said(BOB, metadata(everything=True)),
    ]


@session(3, until=0)
def see_topics_at_first(t: str) -> list[Said]:
    return [
        made(t),
        Said(ALICE, metadata(t, f"{t}-unknown")),
        Said(ALICE, metadata()),  # all of them, here
        grant(rule(BOB, Op.READ, t)),
        Said(BOB, metadata()),
    ]


@session(3, since=8)
def see_topics_with_operations(t: str) -> list[Said]:
    names = (t, f"{t}-b", f"{t}-unknown")
    return [
        made(t),
        made(f"{t}-b"),
        grant(rule(BOB, Op.ALTER, t), rule(BOB, Op.DELETE, f"{t}-unknown")),
        *(Said(who, metadata(*names, operations=True)) for who in (ALICE, BOB, ADMIN)),
    ]


@session(3, since=8, until=10)
def see_what_may_be_done_to_the_cluster(t: str) -> list[Said]:
    body = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    return [Said(who, Ask(body)) for who in (ALICE, CAROL, DAVE, ADMIN)]


@session(3, since=12)
def see_topics_by_id(t: str) -> list[Said]:
    def by_id(ids: Mapping[str, uuid.UUID]) -> MetadataRequest:
        wanted = (ids[t], ids[f"{t}-b"], uuid.UUID(int=77))
        return MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=i) for i in wanted])

    return [
        made(t),
        made(f"{t}-b"),
        Said(ADMIN, metadata(t, f"{t}-b")),
        Said(ALICE, Ask(by_id)),
        grant(rule(BOB, Op.WRITE, t)),
        Said(BOB, Ask(by_id)),
    ]


@session(75)
def see_topics_by_page(t: str) -> list[Said]:
    names = (f"{t}-unknown", t, f"{t}-b")
    some = Ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names]))
    return [
        made(t),
        made(f"{t}-b"),
        Said(ALICE, some),
        Said(ALICE, Ask(DescribeTopicPartitionsRequest(topics=[]))),
        grant(rule(BOB, Op.DESCRIBE, t)),
        Said(BOB, some),
    ]


@session(61)
def see_producers(t: str) -> list[Said]:
    rows = [ProducersOf(name=name, partition_indexes=[0, 4]) for name in (t, f"{t}-unknown")]
    ask = Ask(DescribeProducersRequest(topics=rows))
    return [made(t), Said(ALICE, ask), grant(rule(BOB, Op.READ, t)), Said(BOB, ask)]


@session(10, until=3)
def find_a_coordinator(t: str) -> list[Said]:
    return [Said(ALICE, Ask(FindCoordinatorRequest(key="g")))]


@session(10, since=4)
def find_coordinators(t: str) -> list[Said]:
    return [
        Said(ALICE, Ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["g", "h"])))
        for kind in (0, 1)
    ]


# ---- rules ---------------------------------------------------------------------------------------


@session(30, since=1)
def make_rules(t: str) -> list[Said]:
    creations = [rule(BOB, Op.READ, t), rule(BOB, Op.READ, "mine", ResourceType.CLUSTER)]
    ask = Ask(CreateAclsRequest(creations=creations))
    return [Said(who, ask) for who in (ALICE, DAVE, CAROL)]


@session(29, since=1)
def see_rules(t: str) -> list[Said]:
    ask = Ask(
        DescribeAclsRequest(
            resource_type_filter=ResourceType.TOPIC, resource_name_filter=t,
            pattern_type_filter=PatternType.LITERAL, principal_filter=None, host_filter=None,
            operation=1, permission_type=1,
        )
    )  # fmt: skip
    return [
        grant(rule(BOB, Op.READ, t), rule(BOB, Op.WRITE, t)),
        *(Said(who, ask) for who in (ALICE, DAVE, CAROL)),
    ]


@session(31, since=1)
def drop_rules(t: str) -> list[Said]:
    wanted = DeleteAclsFilter(
        resource_type_filter=ResourceType.TOPIC, resource_name_filter=t,
        pattern_type_filter=PatternType.LITERAL, principal_filter=None, host_filter=None,
        operation=1, permission_type=1,
    )  # fmt: skip
    ask = Ask(DeleteAclsRequest(filters=[wanted, wanted]))
    return [grant(rule(DAVE, Op.READ, t)), *(Said(who, ask) for who in (ALICE, DAVE, CAROL))]
