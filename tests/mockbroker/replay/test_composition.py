"""Every api whose request and response name topics and partitions: an answer says of each what was
recorded for it, and an error for what was not recorded."""

import uuid
from typing import Any

import pytest

from kproto.codec.message import Message
from kproto.dialects import Api, dialect
from kproto.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from kproto.schema.model import Struct
from kproto.transcript import (
    FORMAT,
    Exchange,
    Transcript,
    TranscriptHeader,
    TranscriptMessage,
    TranscriptTrailer,
)
from mockbroker import MockCluster
from mockbroker.apis.common.error_places import chosen_places
from mockbroker.apis.common.request_entities import Selection, partition_field
from mockbroker.apis.common.version_cast import recast
from mockbroker.replay import Composition, RecordedParts, forms_at
from mockbroker.replay.partition_names import Form, Forms, Key, MessagePart, TopicNames
from tests.mockbroker.replay.test_replay import ask, exchange, transcript

CODEC = dialect("kafka")
IDS = {name: uuid.UUID(int=number) for number, name in enumerate(("a", "b", "c"), 1)}


def by_partition() -> list[tuple[Api, int]]:
    found = []
    for api in CODEC.apis.values():
        for version in api.request.VALID_VERSIONS:
            if forms_at(api, version) is not None:
                found.append((api, version))
    return found


CASES = by_partition()


def naming(cls: type[Message], version: int, form: Form, names: list[tuple[str, int]]) -> Message:
    """A message at its defaults that names these."""
    parts = []
    for name, number in names:
        steps: list[Any] = []
        for at, field in enumerate(form.path):
            inner = field.type.inner_struct
            if inner is None:
                steps.append(name if at == form.depth else number)
                continue
            step = cls.STRUCTS[inner.name]()
            if at == form.depth:
                _name(step, inner, version, name)
            if (index := partition_field(inner, version)) is not None and at >= form.depth:
                setattr(step, index.python_name, number)
            steps.append(step)
        level = number if form.level == "partition" else None
        parts.append(MessagePart(Key((), name, level), tuple(steps)))
    message = form.join(cls(), parts)
    recast(message, version)
    return message


def request_of(api: Api, version: int, forms: Forms, names: list[tuple[str, int]]) -> Message:
    return naming(api.request, version, forms.request, names)


def _name(step: Any, struct: Struct, version: int, name: str) -> None:
    for field in struct.fields:
        if field.name == "ResourceName":
            step.resource_name, step.resource_type = name, 2
        elif version in field.versions and field.entity_type == "topicName":
            setattr(step, field.python_name, name)
        elif version in field.versions and field.name == "TopicId":
            step.topic_id = IDS[name]


def recorded(api: Api, version: int, forms: Forms, name: str, number: int) -> Exchange:
    request = request_of(api, version, forms, [(name, number)])
    response = naming(api.response, version, forms.response, [(name, number)])
    return Exchange(
        number=number, api_key=api.api_key, api_version=version, outcome="answered",
        request=TranscriptMessage(version, request.to_json_value(version)),
        response=TranscriptMessage(version, response.to_json_value(version)),
    )  # fmt: skip


def keys_in(message: Message, version: int, forms: Forms) -> set[tuple[str, int | None]]:
    parts = forms.response.split(message, version, TopicNames())
    return {(str(each.key.topic), each.key.partition) for each in parts if each.key.topic}


def shown(name: str, api: Api, version: int, forms: Forms) -> str:
    """As ``keys_in`` calls a topic: by whatever that response calls it."""
    said = naming(api.response, version, forms.response, [(name, 0)])
    (found,) = {key[0] for key in keys_in(said, version, forms)}
    return found


def test_the_apis_that_are_answered_by_partition() -> None:
    keys = {api.api_key for api, _ in CASES}
    # Not: UpdateMetadata, CreateAcls, and the heartbeats of groups.
    assert {0, 1, 2, 3, 8, 9, 19, 20, 21, 23, 32, 43, 44, 45, 46, 61, 78} <= keys
    assert not {6, 18, 30, 68, 76, 88} & keys


@pytest.mark.parametrize(
    ("api", "version"), CASES, ids=[f"{api.name}-{version}" for api, version in CASES]
)
def test_an_answer_is_of_what_was_asked_and_of_nothing_else(api: Api, version: int) -> None:
    forms = forms_at(api, version)
    assert forms is not None
    said = [recorded(api, version, forms, name, number) for name, number in (("a", 0), ("b", 1))]
    composing = Composition(
        RecordedParts(Transcript(TranscriptHeader(FORMAT), said, TranscriptTrailer()))
    )

    def answered(*names: tuple[str, int]) -> tuple[set[tuple[str, int | None]], str]:
        found = composing.answer(api, version, request_of(api, version, forms, list(names)))
        assert found is not None
        assert found.body is not None
        found.body.encode(version)
        return keys_in(found.body, version, forms), found.missing

    level = forms.response.level
    a, b, c = (shown(name, api, version, forms) for name in IDS)
    wanted_a, wanted_b = (a, 0), (b, 1)
    if level == "topic":
        wanted_a, wanted_b = (a, None), (b, None)  # type: ignore[assignment]
    assert answered(("b", 1)) == ({wanted_b}, "")
    assert answered(("b", 1), ("a", 0)) == ({wanted_a, wanted_b}, "")
    found, missing = answered(("a", 0), ("c", 2))
    assert missing.startswith("nothing was recorded for it: ")
    places = chosen_places(api.response, version, level, Selection())
    if places and forms.response.path[forms.response.depth] in places[0].path:
        assert {each[0] for each in found} == {a, c}
    else:  # there is no place for an error of one partition
        assert {each[0] for each in found} == {a}


def produced(topic: str, number: int, offset: int, version: int = 7) -> Exchange:
    asked = {
        "transactionalId": None, "acks": -1, "timeoutMs": 1,
        "topicData": [{"name": topic, "partitionData": [{"index": number, "records": None}]}],
    }  # fmt: skip
    partition = {
        "index": number, "errorCode": 0, "baseOffset": offset, "logAppendTimeMs": -1,
        "logStartOffset": 0,
    }  # fmt: skip
    responses = [{"name": topic, "partitionResponses": [partition]}]
    return exchange(0, version, asked, {"responses": responses, "throttleTimeMs": 0})


async def test_a_batch_of_several_partitions_gets_each_ones_own_offset() -> None:
    mock = MockCluster(brokers=1)
    mock.replay(transcript(produced("a", 0, 10), produced("a", 1, 20), produced("b", 0, 30)))
    body = {"transactionalId": None, "acks": -1, "timeoutMs": 1}
    data = [
        {"name": "b", "partitionData": [{"index": 0, "records": None}]},
        {"name": "a", "partitionData": [{"index": number, "records": None} for number in (2, 1)]},
    ]
    async with mock:
        request = ProduceRequest.from_json({**body, "topicData": data}, 7)
        (found,) = await ask(mock, request, version=7)
        said = {
            (topic.name, each.index): (each.base_offset, each.error_code)
            for topic in found.responses
            for each in topic.partition_responses
        }
        assert said == {("b", 0): (30, 0), ("a", 1): (20, 0), ("a", 2): (-1, 3)}
        (missed,) = mock.journal.select(event="replay-miss")
        assert missed.note == "nothing was recorded for it: a-2"


async def test_topics_of_another_connection_are_one_answer() -> None:
    """ListOffsets of two clients, each of its own topic, answer one that asks for both."""

    def listed(topic: str, offset: int) -> Exchange:
        asked = [{"name": topic, "partitions": [{"partitionIndex": 0, "timestamp": -1}]}]
        said = {"partitionIndex": 0, "errorCode": 0, "timestamp": -1, "offset": offset}
        return exchange(
            2, 1, {"replicaId": -1, "topics": asked},
            {"topics": [{"name": topic, "partitions": [said]}]},
        )  # fmt: skip

    mock = MockCluster(brokers=1)
    mock.replay(transcript(listed("a", 5), listed("b", 6)))
    topics = [
        {"name": name, "partitions": [{"partitionIndex": 0, "timestamp": -1}]} for name in "ba"
    ]
    async with mock:
        request = ListOffsetsRequest.from_json({"replicaId": -1, "topics": topics}, 1)
        (found,) = await ask(mock, request, version=1)
    assert [(each.name, each.partitions[0].offset) for each in found.topics] == [("b", 6), ("a", 5)]


async def test_an_unknown_topic_keeps_the_recorded_brokers() -> None:
    said = {
        "brokers": [{"nodeId": 1007, "host": "host-1", "port": 1, "rack": None}],
        "controllerId": 1007, "topics": [
            {"errorCode": 0, "name": "a", "isInternal": False, "partitions": []}
        ],
    }  # fmt: skip
    mock = MockCluster(brokers=1)
    mock.replay(transcript(exchange(3, 1, {"topics": None}, said)))
    async with mock:
        bodies = [MetadataRequest.from_json({"topics": [{"name": "c"}]}, 1),
                  MetadataRequest.from_json({"topics": []}, 1),
                  MetadataRequest.from_json({"topics": None}, 1)]  # fmt: skip
        unknown, none, every = await ask(mock, *bodies, version=1)
    assert [(each.name, each.error_code) for each in unknown.topics] == [("c", 3)]
    assert [each.node_id for each in unknown.brokers] == [1007]
    assert none.topics == []
    assert [each.name for each in every.topics] == ["a"]


# ---- sessions --------------------------------------------------------------------------------


def fetch(session: int, epoch: int, *topics: tuple[str, int], forgotten: str = "") -> Any:
    return {
        "replicaId": -1, "maxWaitMs": 0, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0,
        "sessionId": session, "sessionEpoch": epoch, "topics": [
            {"topic": topic, "partitions": [
                {"partition": 0, "fetchOffset": at, "logStartOffset": -1, "partitionMaxBytes": 1}
            ]}
            for topic, at in topics
        ],
        "forgottenTopicsData": [{"topic": each, "partitions": [0]} for each in forgotten],
    }  # fmt: skip


def fetched(session: int, **records: str) -> Any:
    return {
        "throttleTimeMs": 0, "errorCode": 0, "sessionId": session, "responses": [
            {"topic": topic, "partitions": [
                {"partitionIndex": 0, "errorCode": 0, "highWatermark": 9, "lastStableOffset": 9,
                 "logStartOffset": 0, "abortedTransactions": None, "records": each}
            ]}
            for topic, each in records.items()
        ],
    }  # fmt: skip


def contents(found: FetchResponse) -> dict[str, bytes | None]:
    return {each.topic: each.partitions[0].records for each in found.responses}


async def test_fetch_sessions_are_followed_on_both_sides() -> None:
    """A request of a session that names nothing stands for all its partitions; an answer that
    leaves a partition out says that there is nothing new."""
    mock = MockCluster(brokers=1)
    mock.replay(
        transcript(
            exchange(1, 7, fetch(0, 0, ("a", 0), ("b", 0)), fetched(5, a="YWE=", b="YmI=")),
            exchange(1, 7, fetch(5, 1, ("a", 2)), fetched(5, a="QUE=")),
            exchange(1, 7, fetch(5, 2, forgotten="a"), fetched(5)),
        )
    )
    bodies = [
        fetch(0, 0, ("b", 0), ("a", 0)),  # opens a session
        fetch(5, 1, ("a", 2)),
        fetch(5, 2, forgotten="a"),
        fetch(6, 1),  # a session that was never opened
        fetch(0, -1, ("a", 2)),  # without a session
    ]
    async with mock:
        found = await ask(mock, *[FetchRequest.from_json(each, 7) for each in bodies], version=7)
        notes = [each.note for each in mock.journal.select(event="replay-miss")]
    assert [contents(each) for each in found] == [
        {"a": b"aa", "b": b"bb"}, {"a": b"AA", "b": b""}, {"b": b""}, {}, {"a": b"AA"},
    ]  # fmt: skip
    assert [each.session_id for each in found] == [5, 5, 5, 0, 0]
    assert [each.error_code for each in found] == [0, 0, 0, 70, 0]
    assert notes == ["a session that was not opened on this connection"]


async def test_ids_and_names_are_the_same_topic() -> None:
    """Recorded by name, and asked for by the id that the recorded metadata has."""
    name, topic_id = "a", "AAAAAAAAAAAAAAAAAAAAAQ"
    topic = {
        "errorCode": 0, "name": name, "topicId": topic_id, "isInternal": False, "partitions": [],
        "topicAuthorizedOperations": 0,
    }  # fmt: skip
    metadata = {
        "throttleTimeMs": 0, "brokers": [], "clusterId": None, "controllerId": 1, "topics": [topic]
    }  # fmt: skip
    asked = {
        "topics": None, "allowAutoTopicCreation": False,
        "includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False,
    }  # fmt: skip
    mock = MockCluster(brokers=1)
    mock.replay(
        transcript(
            exchange(3, 10, asked, {**metadata, "clusterAuthorizedOperations": 0}),
            exchange(1, 7, fetch(0, -1, ("a", 0)), fetched(0, a="YWE=")),
        )
    )
    body = {**fetch(0, -1), "rackId": ""}
    partition = {
        "partition": 0, "currentLeaderEpoch": 0, "fetchOffset": 0, "lastFetchedEpoch": -1,
        "logStartOffset": -1, "partitionMaxBytes": 1,
    }  # fmt: skip
    known, unknown = (
        FetchRequest.from_json(
            {**body, "topics": [{"topicId": each, "partitions": [partition]}]}, 13
        )
        for each in (topic_id, "AAAAAAAAAAAAAAAAAAAABw")
    )
    async with mock:
        found, missed = await ask(mock, known, unknown, version=13)
    assert [str(each.topic_id) for each in found.responses] == [str(uuid.UUID(int=1))]
    assert found.responses[0].partitions[0].records == b"aa"
    assert missed.responses[0].topic_id == uuid.UUID(int=7)
    assert missed.responses[0].partitions[0].error_code == 100
    assert missed.responses[0].partitions[0].partition_index == 0
