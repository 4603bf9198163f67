"""An incident met again: a released client talks to a broker with a quirk, its connections are
extracted, and the same client, against a mock that knows nothing of the quirk, meets the same
answers and negotiates the same versions."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from kproto.messages import AlterPartitionReassignmentsResponse
from mockbroker import MockCluster
from tests.mockbroker.replay.recorded import extracted
from tests.support.toolchain import require_module
from tests.support.waiting import in_thread
from wiredump.extraction import Hiding, chosen, transcript_of
from wiredump.sources import open_sources

LOGS = Path(__file__).parents[2] / "captures" / "request_logs"


def asked(mock: MockCluster, *keys: int) -> set[tuple[int | None, int | None]]:
    """Which of these apis were asked for, at which versions."""
    entries = mock.journal.select(direction="request")
    return {(entry.api_key, entry.api_version) for entry in entries if entry.api_key in keys}


def misses(mock: MockCluster) -> list[tuple[int | None, str]]:
    return [(entry.api_key, entry.note) for entry in mock.journal.select(event="replay-miss")]


def quirk(call: Any) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=87, error_message="this controller is for looking at only"
    )


async def test_kafka_python_meets_the_same_refusal() -> None:
    kafka: Any = require_module("kafka")

    def session(bootstrap: str) -> list[Any]:
        admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, client_id="incident")
        try:
            met: list[Any] = []
            try:
                admin.alter_partition_reassignments({kafka.TopicPartition("foo", 0): [2, 3]})
            except kafka.errors.KafkaError as error:
                met.append((type(error).__name__, str(error)))
            met.append(admin.list_partition_reassignments())
            described = admin.describe_topics(["foo"])[0]
            met.append([each["replica_nodes"] for each in described["partitions"]])
            return met
        finally:
            admin.close()

    old = MockCluster(brokers=4, topics=["foo=1,2,3"], profile="kafka-2.4")
    old.on(45)(quirk)
    async with old:
        first = await in_thread(lambda: session(old.bootstrap))
    assert first[0][0] == "InvalidRecordError"
    transcript = extracted(old.journal, client_id="incident")

    new = MockCluster(brokers=2, topics=["other=1,2"], profile="kafka-4.1")
    new.replay(transcript)
    async with new:
        again = await in_thread(lambda: session(new.bootstrap))
    assert again == first
    assert misses(new) == []
    # It fell back, and negotiated, as it did then.
    assert asked(new, 3, 18, 45, 46) == asked(old, 3, 18, 45, 46)
    assert asked(new, 18) == {(18, 4), (18, 3)}
    marks = {entry.event for entry in new.journal.select(direction="response")}
    assert marks == {"replayed"}


async def test_librdkafka_meets_the_same_errors() -> None:
    confluent: Any = require_module("confluent_kafka.admin")
    names: Any = require_module("confluent_kafka")

    def session(bootstrap: str) -> list[Any]:
        admin = confluent.AdminClient({"bootstrap.servers": bootstrap, "client.id": "incident"})
        topics = admin.list_topics(timeout=10).topics
        met: list[Any] = [sorted((name, str(topic.error)) for name, topic in topics.items())]
        made = admin.create_topics([confluent.NewTopic("new", 1, 1)])["new"]
        try:
            made.result(10)
        except names.KafkaException as error:
            met.append((error.args[0].name(), error.args[0].str()))
        return met

    old = MockCluster(brokers=1, topics=["foo=1", "bar=1"], profile="kafka-3.6")

    @old.on(19)
    def full(call: Any) -> dict[str, Any]:
        name = call.body.topics[0].name
        topic = {
            "name": name, "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 44,
            "errorMessage": "the disk is full", "numPartitions": -1, "replicationFactor": -1,
            "configs": [],
        }  # fmt: skip
        return {"throttleTimeMs": 0, "topics": [topic]}

    async with old:
        first = await in_thread(lambda: session(old.bootstrap))
    assert first[1] == ("POLICY_VIOLATION", "the disk is full")

    new = MockCluster(brokers=1, profile="kafka-4.1")
    new.replay(extracted(old.journal, client_id="incident"))
    async with new:
        again = await in_thread(lambda: session(new.bootstrap))
    assert again == first
    assert misses(new) == []
    assert asked(new, 18, 19) == asked(old, 18, 19)


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
async def test_what_a_real_broker_logged_is_met_again(release: str) -> None:
    """From a request log of Kafka's own, where there are no bytes at all."""
    kafka: Any = require_module("kafka")
    foo = kafka.TopicPartition("foo", 0)

    def session(bootstrap: str) -> list[Any]:
        admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, client_id="desk")
        try:
            plans: list[Any] = [{foo: [1]}, {foo: [9]}, {foo: None}]
            met = [admin.alter_partition_reassignments(plan)[foo] for plan in plans]
            return [*met, admin.list_partition_reassignments()]
        finally:
            admin.close()

    sources = open_sources([str(LOGS / f"kafka-{release}.log")])
    choices = chosen(sources, client_id="admin")
    mock = MockCluster(brokers=1, profile="kafka-2.4")
    mock.replay(transcript_of(choices, Hiding()))
    async with mock:
        met = await in_thread(lambda: session(mock.bootstrap))
    assert met == [
        None,
        kafka.errors.InvalidReplicationAssignmentError,
        kafka.errors.NoReassignmentInProgressError,
        {},
    ]
    assert misses(mock) == []


@pytest.mark.slow  # it waits, as a client does
# kafka-python leaves a socket that its time-out aborted to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("latency", [False, True])
async def test_what_never_came_does_not_come_again(latency: bool) -> None:
    """A client that waited in vain and closed waits in vain again, until it closes of itself."""
    kafka: Any = require_module("kafka")

    def session(bootstrap: str) -> str:
        admin = kafka.KafkaAdminClient(
            bootstrap_servers=bootstrap, client_id="incident", request_timeout_ms=2000
        )
        try:
            admin.list_partition_reassignments()
        except kafka.errors.KafkaError as error:
            return type(error).__name__
        finally:
            admin.close()
            del admin
            gc.collect()
        return "nothing"

    async def never(call: Any) -> Any:
        await asyncio.Event().wait()

    old = MockCluster(brokers=1, topics=["foo=1"], profile="kafka-3.9")
    old.on(46)(never)
    async with old:
        first = await in_thread(lambda: session(old.bootstrap))
    assert first != "nothing"
    transcript = extracted(old.journal, client_id="incident")
    unanswered = [each for each in transcript.exchanges if each.outcome == "unanswered"]
    assert unanswered
    assert {each.api_key for each in unanswered} == {46}

    new = MockCluster(brokers=1, topics=["foo=1"], profile="kafka-3.9")
    new.replay(transcript, latency=latency)
    async with new:
        again = await in_thread(lambda: session(new.bootstrap))
    assert again == first
