"""Which requests a rule takes, which rule takes a request, and how often."""

import asyncio
import uuid
from typing import Any

import pytest

from kproto.journal import ClientSoftware
from kproto.messages import DescribeConfigsRequest, MetadataRequest, ProduceRequest
from mockbroker.errors import FaultError
from mockbroker.faults import Fault
from mockbroker.faults.matching import ActiveFault, FaultRules, RequestFacts
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.state.timers import Timers
from tests.support.requests import request_of

TOPICS = Cluster(3, topics=["foo:2:1", "bar:1:1"]).topics
NAMES = {"metadata": 3, "alterpartitionreassignments": 45}


def rules(*faults: Fault, **named: Any) -> FaultRules:
    made = FaultRules(lambda: NAMES, named.pop("timers", None) or Timers())
    made.add(faults, **named)
    return made


def asked(**changed: Any) -> RequestFacts:
    usual = RequestFacts(
        1, 1, 3, 9, "me", ClientSoftware("kproto", "1.2"), TOPICS, request_of("Metadata")
    )
    return usual._replace(**changed)


def take(made: FaultRules, request: RequestFacts) -> ActiveFault | None:
    def failed(_rule: ActiveFault, error: Exception) -> None:
        raise error

    return made.take(request, failed)


def rule(**members: Any) -> ActiveFault:
    (made,) = rules(Fault(delay=1, **members))
    return made


@pytest.mark.parametrize(
    ("members", "agreeing", "others"),
    [
        ({"broker": 2}, {"broker_id": 2}, {"broker_id": 1}),
        ({"api": 45}, {"api_key": 45}, {"api_key": 46}),
        ({"api": "45"}, {"api_key": 45}, {"api_key": 46}),
        ({"api": "ALTER_PARTITION_REASSIGNMENTS"}, {"api_key": 45}, {"api_key": 3}),
        ({"api": "AlterPartitionReassignmentsRequest"}, {"api_key": 45}, {"api_key": 3}),
        ({"version": "3+"}, {"version": 3}, {"version": 2}),
        ({"version": "1-2"}, {"version": 2}, {"version": 3}),
        ({"client_id": "pay*"}, {"client_id": "payments"}, {"client_id": "repay"}),
        ({"client_id": ""}, {"client_id": None}, {"client_id": "x"}),
        ({"software": "kp*"}, {}, {"software": None}),
        ({"software_version": "1.*"}, {}, {"software": ClientSoftware("kproto", "2")}),
        ({"topic": "f*"}, {"body": request_of("Metadata", topics=None)}, {"body": None}),
    ],
)
def test_every_matcher_agrees_and_disagrees(members, agreeing, others):
    assert rule(**members).takes(asked(**agreeing))
    assert not rule(**members).takes(asked(**others))


def test_all_matchers_have_to_agree():
    made = rule(broker=1, api=3, client_id="me")
    assert not made.takes(asked(broker_id=2))
    assert not made.takes(asked(client_id="you"))
    assert made.takes(asked())
    assert (made.hits, made.matched) == (1, 1)


def reassign(topic: str, *partitions: int) -> Any:
    return request_of(
        "AlterPartitionReassignments",
        name=topic,
        partitions=[{"partition_index": p} for p in partitions],
    )


EVERY_PARTITION = request_of("ElectLeaders", topic_partitions=None)


@pytest.mark.parametrize(
    ("body", "version", "names"),
    [
        (reassign("foo", 0, 1), 0, {("foo", 0), ("foo", 1)}),
        (reassign("bar", 0), 0, {("bar", 0)}),
        (EVERY_PARTITION, 2, {("foo", 0), ("foo", 1), ("bar", 0)}),
        (request_of("ElectLeaders", topic="foo", partitions=[1]), 2, {("foo", 1)}),
        (
            ProduceRequest.from_json(
                {"transactionalId": None, "acks": 1, "timeoutMs": 1,
                 "topicData": [
                     {"name": "foo", "partitionData": [{"index": 1, "records": None}]}]}, 9
            ),
            9,
            {("foo", 1)},
        ),
        (
            DescribeConfigsRequest.from_json(
                {"includeSynonyms": False, "includeDocumentation": False,
                 "resources": [
                     {"resourceType": kind, "resourceName": name, "configurationKeys": None}
                     for kind, name in ((2, "foo"), (4, "bar"))]},
                4,
            ),
            4,
            {("foo", 0), ("foo", 1)},
        ),
    ],
)  # fmt: skip
def test_topics_and_partitions_are_those_that_a_request_names(body, version, names):
    for topic, partition in [("foo", 0), ("foo", 1), ("bar", 0)]:
        made = rule(topic=topic, partition=partition)
        request = asked(api_key=body.API_KEY, version=version, body=body)
        assert made.takes(request) is ((topic, partition) in names), (topic, partition)


def test_who_asks_for_all_names_what_there_is():
    for members, taken in [
        ({"topic": "foo"}, True),
        ({"topic": "none"}, False),
        ({"topic": "bar", "partition": 0}, True),
        ({"topic": "bar", "partition": 1}, False),
        ({"partition": 1}, True),
        ({"partition": 2}, False),
    ]:
        for body in (
            request_of("Metadata", topics=None),
            request_of("ElectLeaders", topic_partitions=None),
        ):
            version = 9 if body.API_KEY == 3 else 2
            request = asked(api_key=body.API_KEY, version=version, body=body)
            assert rule(**members).takes(request) is taken, members


def test_topics_by_id_are_known_by_name():
    body = MetadataRequest.from_json(
        {"topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": None}],
         "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False}, 12
    )  # fmt: skip
    (topic,) = body.topics or []
    topic.topic_id = TOPICS["foo"].topic_id
    assert rule(topic="foo").takes(asked(body=body, version=12))
    topic.topic_id = uuid.UUID(int=5)
    assert not rule(topic="foo").takes(asked(body=body, version=12))


def test_what_is_added_later_is_asked_first_and_a_file_in_its_order():
    made = rules(Fault(name="a", delay=1, times=1), Fault(name="b", delay=1))
    made.add([Fault(name="c", delay=1, times=2), Fault(name="d", delay=1, api=45)])
    assert [each.name for each in made] == ["c", "d", "a", "b"]
    taken = [take(made, asked()) for _ in range(4)]
    assert [each and each.name for each in taken] == ["c", "c", "a", "b"]
    assert [each.name for each in made.unused()] == ["d"]


@pytest.mark.requirement("DP-API-96")
def test_a_rule_that_observes_counts_and_leaves_the_request_to_the_next():
    made = rules(
        Fault(name="counts", observe=True, api=3, nth="2+", times=2), Fault(name="acts", delay=1)
    )
    counts, acts = made
    requests = [3, 45, 3, 3, 3]
    assert [take(made, asked(api_key=key)) for key in requests] == [acts] * 5
    assert (counts.matched, counts.hits, counts.live) == (3, 2, False)
    assert take(rules(Fault(observe=True)), asked()) is None
    with pytest.raises(FaultError, match="observe cannot be combined with delay"):
        Fault(observe=True, delay=1)


def test_a_rule_that_is_used_up_or_removed_or_over_takes_nothing():
    timers = Timers()
    made = rules(
        Fault(name="twice", delay=1, times=2), Fault(name="soon", delay=1, expires="1s"),
        timers=timers,
    )  # fmt: skip
    taken = []
    for now_ms in (0, 0, 999, 1000, 1001):
        timers.run_until(now_ms)
        taken.append(take(made, asked()) is not None)
    assert taken == [True, True, True, False, False]
    assert [made.live] == [False]
    made.add([Fault(name="new", delay=1)])
    assert [made.live] == [True]
    made.remove("new")
    assert [made.live] == [False]
    with pytest.raises(FaultError, match="unknown rule 'new'"):
        made.remove("new")


def test_nth_counts_those_that_agreed():
    made = rules(Fault(delay=1, api=3, nth="2-3"))
    keys = [3, 45, 3, 45, 3, 3]
    assert [take(made, asked(api_key=key)) is not None for key in keys] == [
        False, False, True, False, True, False,
    ]  # fmt: skip


def test_connections_are_counted_among_those_that_agreed():
    made = rules(Fault(delay=1, api=3, connection="2+"))
    seen = [(7, 45), (9, 3), (7, 3), (9, 3), (11, 3)]
    taken = [take(made, asked(connection_id=c, api_key=key)) for c, key in seen]
    assert [each is not None for each in taken] == [False, False, True, False, True]


def test_the_same_seed_draws_the_same():
    def drawn(seed: int) -> list[bool]:
        made = rules(Fault(delay=1, probability=0.5, seed=seed))
        return [take(made, asked()) is not None for _ in range(64)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert 10 < sum(drawn(1)) < 54


def test_one_rules_draws_do_not_depend_on_anothers():
    alone = rules(Fault(name="x", delay=1, probability=0.5, api=3))
    beside = rules(
        Fault(name="y", delay=1, probability=0.5, api=45),
        Fault(name="x", delay=1, probability=0.5, api=3),
    )
    found: list[list[str | None]] = [[], []]
    for each in range(40):
        for place, made in enumerate((alone, beside)):
            taken = take(made, asked(api_key=3))
            found[place].append(taken and taken.name)
            if place and each % 3:
                take(made, asked(api_key=45))
    assert found[0] == found[1]


def test_a_predicate_is_asked_last():
    calls: list[str] = []
    made = FaultRules(lambda: NAMES, Timers())

    def says_yes(call: str) -> bool:
        calls.append(call)
        return call == "yes"

    made.add([Fault(delay=1, api=3)], says_yes)
    assert take(made, asked(api_key=45, call=lambda: "yes")) is None
    assert take(made, asked(call=lambda: "no")) is None
    assert take(made, asked(call=lambda: "yes")) is not None
    assert take(made, asked(call=None)) is None
    assert calls == ["no", "yes"]


def test_names_are_given_and_taken_once():
    made = rules(Fault(delay=1), Fault(delay=1))
    assert [each.name for each in made] == ["fault-1", "fault-2"]
    with pytest.raises(FaultError, match="already"):
        made.add([Fault(delay=1, name="new"), Fault(delay=1, name="fault-2")])
    assert len(made) == 2
    with pytest.raises(FaultError, match="unknown API 'Nope'"):
        made.add([Fault(delay=1, api="Nope")])


async def test_waiting_for_hits():
    from mockbroker import MockCluster

    async with MockCluster() as mock:
        made = mock.fault(delay=1, times=3, name="three")
        waiting = asyncio.create_task(mock.wait_for_hit("three", 2))
        await asyncio.sleep(0)
        for _ in range(2):
            assert not waiting.done()
            assert made.takes(asked())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await waiting
        doomed = asyncio.create_task(mock.wait_for_hit(made, 9))
        await asyncio.sleep(0)
        mock.remove_fault(made)
        with pytest.raises(FaultError, match="ended after 2 hits, before hit 9"):
            await doomed
