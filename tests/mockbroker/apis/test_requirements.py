"""Each requirement that a handler declares: a request that does not meet it is refused with the
declared code, at every version, in every place that the response has for it.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec
import pytest

from kproto.codec.registry import schema_of
from kproto.messages import DeleteTopicsRequest
from kproto.schema.model import ZERO_UUID
from mockbroker.apis import HANDLERS, Call, Handler
from mockbroker.apis.common.error_places import Place, places_of
from mockbroker.apis.common.request_entities import fields_of, named_by
from mockbroker.apis.common.requirements import Requirement
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.security.policy import OPEN
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.filled_requests import filled_request
from tests.mockbroker.simulation.security.enforced import (
    ALICE,
    ENFORCED,
    EVERYTHING,
    KAFKA,
    allow,
    new_cluster,
)

CLUSTER, GROUP = ResourceType.CLUSTER, ResourceType.GROUP
TRANSACTION = ResourceType.TRANSACTIONAL_ID
CODES = {CLUSTER: 31, GROUP: 30, TRANSACTION: 53}

ACCESS: Mapping[AclOperation, Mapping[ResourceType, set[int]]] = {
    AclOperation.READ: {GROUP: {8, 11, 12, 13, 14, 68, 76, 78, 79, 88, 91, 93}},
    AclOperation.WRITE: {TRANSACTION: {22, 25, 26, 28}},
    AclOperation.DELETE: {GROUP: {47, 92}},
    AclOperation.ALTER: {CLUSTER: {27, 30, 31, 34, 43, 45, 51, 57, 64, 80, 81, 94}},
    AclOperation.ALTER_CONFIGS: {CLUSTER: {49}},
    AclOperation.DESCRIBE: {CLUSTER: {29, 35, 46, 50, 55}},
    AclOperation.DESCRIBE_CONFIGS: {CLUSTER: {48, 74}},
    AclOperation.CLUSTER_ACTION: {CLUSTER: {4, 5, 6, 83, 84, 85, 86, 87}},
}
"""What the caller of an API has to be allowed before all else: the permission, and on what."""

UNAUTHORIZED = {
    key: CODES[kind] for kinds in ACCESS.values() for kind, keys in kinds.items() for key in keys
}
EVERYWHERE = {4, 5, 43, 45, 46}
"""Responses to unauthorised callers that repeat what the request names, beside an error on top."""


class Situation(msgspec.Struct, frozen=True, eq=False):
    """``codes`` are those of the APIs whose requests are refused, ``since`` the first version that
    is where it is not 0. Only requests of ``keys`` are sent, by default of all APIs."""

    name: str
    codes: Mapping[int, int]
    change: Callable[[Any], None] = lambda body: None
    profile: str = "kafka-4.4"
    broker_id: int = 1
    granted: tuple[tuple[AclOperation, ResourceType], ...] | None = None
    features: Mapping[str, int] = {}
    keys: Collection[int] = frozenset(HANDLERS)
    since: Mapping[int, int] = {}

    def code(self, key: int, version: int) -> int:
        if (self.name, key) == ("unauthorised", 24):
            return 31 if version >= 4 else 53
        return self.codes.get(key, 0) if version >= self.since.get(key, 0) else 0


class Refused(NamedTuple):
    key: int
    version: int
    request: Any
    answer: Any
    by: Requirement | None
    code: int
    text: str | None


def set_all(**values: Any) -> Callable[[Any], None]:
    """Change the fields that the request has."""

    def change(body: Any) -> None:
        for name, value in values.items():
            if hasattr(body, name):
                setattr(body, name, value)

    return change


def take_time(body: Any) -> None:
    """Also name each topic of DeleteTopics by its name alone: other rows wait for nothing."""
    body.timeout_ms = 0
    if isinstance(body, DeleteTopicsRequest):
        for each in body.topics:
            each.topic_id = ZERO_UUID


def name_internal_topics(body: Any) -> None:
    body.topology.subtopologies[0].source_topics = ["__consumer_offsets"]


CONTROLLERS = {19, 20, 37, 45, 46, 49, 51, 57}
LATE = {19, 20, 37, 43, 45}
KINDS_OF_GROUPS = {68, 69, 76, 77, 78, 79, 88, 89, 90, 91, 92, 93}
GROUP_READ = ((AclOperation.READ, GROUP),)
NO_GROUPS = {"group.version": 0, "share.version": 0, "streams.version": 0}
RENEWAL = {78: 42}
ZOOKEEPER = "kafka-3.9-zk"

SITUATIONS = [
    Situation("unauthorised", UNAUTHORIZED, granted=()),
    Situation(
        "unauthorised with ZooKeeper", UNAUTHORIZED, profile=ZOOKEEPER, granted=(), keys={43, 45}
    ),
    Situation(
        "no access to the group", {25: 30, 28: 30}, keys={25, 28},
        granted=((AclOperation.WRITE, TRANSACTION),),
    ),
    Situation(
        "no access to topics", {68: 29, 76: 29, 88: 29}, keys={68, 76, 88}, granted=GROUP_READ
    ),
    Situation(
        "not the controller", dict.fromkeys(CONTROLLERS, 41), profile=ZOOKEEPER, broker_id=2,
        keys=CONTROLLERS | {43},
    ),
    Situation("late", dict.fromkeys(LATE, 7), take_time, keys=LATE),
    Situation("late in a preview", {46: 7}, take_time, profile="kafka-3.0", keys={46}),
    Situation("elections of a preview", {43: 35}, profile="kafka-3.0", keys={43}),
    Situation("the quorum of an early access", {55: -1}, profile="kafka-2.8", keys={55}),
    Situation(
        "groups are not served", dict.fromkeys(KINDS_OF_GROUPS, 35), features=NO_GROUPS,
        keys=KINDS_OF_GROUPS,
    ),
    Situation("not the coordinator", {47: 16, 91: 16, 92: 16}, keys={47, 91, 92}),
    Situation(
        "unauthorised, about everything", UNAUTHORIZED,
        set_all(topics=None, topic_partitions=None), granted=(), keys={43, 46},
    ),
    Situation("no group", {47: 69}, keys={47}, broker_id=0),
    Situation(
        "an old controller", {4: 11, 5: 11, 6: 11},
        set_all(controller_epoch=-5, broker_epoch=-1), keys={4, 5, 6},
    ),
    Situation(
        "no group id", {47: 24, 91: 24, 92: 24}, set_all(group_id=""), keys={12, 47, 91, 92}
    ),
    Situation("a null group id", {78: 42, 79: 42}, set_all(group_id=None), keys={78, 79}),
    Situation(
        "no member id", {76: 42, 78: 42, 79: 42}, set_all(member_id=""), keys={76, 78, 79}
    ),
    Situation("a renewal that fetches", RENEWAL, keys=RENEWAL, since={78: 2}),
    Situation("no protocol", {14: 23}, set_all(protocol_name=None), keys={14}, since={14: 5}),
    Situation(
        "a producer id without an epoch", {22: 42}, set_all(producer_epoch=-1), keys={22},
        since={22: 3},
    ),
    Situation("an internal topic in a topology", {88: 130}, name_internal_topics, keys={88}),
]  # fmt: skip


@cache
def asked(situation: Situation) -> list[Refused]:
    """Send the request of each version of each API, to a new cluster each."""
    found: list[tuple[Requirement, int, str | None]] = []
    refuse = Requirement.refusal

    def spy(requirement: Requirement, call: Call, code: int) -> Any:
        found.append((requirement, code, requirement.text(call, code)))
        return refuse(requirement, call, code)

    answered = []
    with patch.object(Requirement, "refusal", spy):
        for key in sorted(situation.keys):
            for version in HANDLERS[key].versions:
                cluster = new_cluster(features=situation.features)
                broker = _broker(cluster, situation)
                if version not in broker.dispatcher.served.get(key, ()):
                    continue
                body = filled_request(KAFKA.apis[key].request, version)
                situation.change(body)
                broker_id = situation.broker_id or _coordinator(broker, body.group_id)
                before = len(cluster.log)
                answer = broker.ask(body, version, broker_id=broker_id)
                by, code, text = found.pop() if found else (None, 0, None)
                answered.append(Refused(key, version, body, answer, by, code, text))
                assert not by or len(cluster.log) == before
                assert not broker.journal.select(event="failed")
    return answered


def _broker(cluster: Any, situation: Situation) -> DirectBroker:
    for operation, kind in situation.granted or ():
        allow(cluster, operation, "kafka-cluster" if kind is CLUSTER else "*", kind)
    return DirectBroker(
        cluster,
        profile_name=situation.profile,
        apis=EVERYTHING if situation.profile == "kafka-4.4" else None,
        security=OPEN if situation.granted is None else ENFORCED,
        principal=ALICE,
    )


def _coordinator(broker: DirectBroker, group_id: str) -> int:
    broker.ask("FindCoordinator", 3, key=group_id)
    return int(broker.ask("FindCoordinator", 3, key=group_id).node_id)


@pytest.mark.requirement(
    "A-28",
    "A-56",
    "DP-SHARE-44",
    "K183-06",
    "K183-07",
    "K183-10",
    "K455-20",
    "K455-21",
    "K455-22",
    "K455-24",
    "K455-25",
)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_a_request_that_does_not_meet_a_requirement(situation: Situation) -> None:
    refused = 0
    for each in asked(situation):
        code = situation.code(each.key, each.version)
        assert (each.by is not None) == (code != 0), (each.key, each.version)
        if each.by is not None:
            check_places(each, each.by, code)
            refused += 1
    assert refused


def check_places(refused: Refused, by: Requirement, code: int) -> None:
    """The code and the text are at each place of the declared extent, and nowhere else."""
    answer, version = refused.answer, refused.version
    places = places_of(type(answer), version)
    everywhere = by.extent == "everywhere"
    chosen = [p for p in places if everywhere or len(p.path) == len(places[0].path)]
    for place in places:
        rows = holders(answer, place)
        codes = {getattr(row, place.code.python_name) for row in rows}
        assert codes == ({code} if place in chosen and rows else codes & {0})
        for row in rows if place in chosen else ():
            if any(f.name == "ErrorMessage" for f in fields_of(_struct(answer, place), version)):
                assert row.error_message == refused.text
    if refused.key in EVERYWHERE and code == 31:
        assert everywhere
    if (everywhere or places[0].path) and refused.key != 35:  # whose old versions have no error
        named = [each for each in named_by(refused.request, version, {}) if each.topic]
        echoed = named_by(answer, version, {})
        assert any(holders(answer, place) for place in chosen) or refused.key == 46 or not named
        if by.extent == "everywhere" or any(p.level == "partition" for p in chosen):
            assert len(set(echoed)) == len(set(named)), (refused.key, version)


def holders(body: Any, place: Place) -> list[Any]:
    rows = [body]
    for field in place.path:
        rows = [each for row in rows for each in getattr(row, field.python_name)]
    return rows


def _struct(body: Any, place: Place) -> Any:
    if not place.path:
        return schema_of(type(body)).root
    return place.path[-1].type.inner_struct


@pytest.mark.slow
def test_each_requirement_refuses_something() -> None:
    """A requirement that no request here fails is not tested."""
    used = {id(each.by) for situation in SITUATIONS for each in asked(situation)}
    handlers: list[Handler] = list(HANDLERS.values())
    unused = [
        (handler.api_key, place)
        for handler in handlers
        for place, each in enumerate(handler.requires)
        if id(each) not in used
    ]
    # Elements of access rules that are UNKNOWN close the connection: test_acl_elements.
    # So do those that are ANY, up to 2.4: test_older_releases.
    # And unknown isolation levels, up to 2.6.
    assert sorted(unused) == [(1, 0), (2, 0), (29, 0), (30, 0), (30, 1), (31, 0)]


@pytest.mark.parametrize("operation", ACCESS, ids=lambda operation: operation.name)
def test_one_permission_is_enough(operation: AclOperation) -> None:
    for kind, keys in ACCESS[operation].items():
        allowed = Situation("allowed", {}, granted=((operation, kind),), keys=keys)
        for each in asked(allowed):
            # Two-phase commit needs TWO_PHASE_COMMIT beside WRITE.
            if not getattr(each.request, "enable2_pc", False):
                assert each.code != CODES[kind], (each.key, each.version)
