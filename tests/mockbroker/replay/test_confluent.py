"""librdkafka produces to and consumes from a replayed capture of several topics: each answer is
about the topics and partitions of its request, and what it says is what was recorded for them."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kproto.dialects import dialect
from kproto.records import RecordBatches
from kproto.transcript import Transcript, read_transcript, write_transcript
from mockbroker import MockCluster
from mockbroker.replay.partition_names import TopicNames
from mockbroker.replay.recorded_parts import forms_at
from tests.support.full import either
from tests.support.toolchain import require_module
from wiredump.extraction import Hiding, chosen, transcript_of
from wiredump.model import Exchange
from wiredump.sources import open_sources

CAPTURE = Path(__file__).parents[2] / "captures" / "kafka-4.4.0-everyday-1.pcap.zst"
CLIENTS = ("confluent", "aiokafka", "kafka-python")
TOPICS = {"everyday-confluent": 3, "everyday-aiokafka": 2, "everyday-kafka-python": 2}
PLACES = {(name, number) for name, count in TOPICS.items() for number in range(count)}
RUNS = either(12, 1)
SECONDS = 60


@pytest.fixture(scope="module")
def transcript() -> Transcript:
    items = list(open_sources([str(CAPTURE)]))
    numbers = {
        each.connection.number
        for each in items
        if isinstance(each, Exchange) and each.client_id in CLIENTS
    }
    told = transcript_of(chosen(items, numbers=numbers), Hiding(records=False))
    return read_transcript(list(write_transcript(told)))


def said_in(transcript: Transcript) -> tuple[set[Any], set[Any]]:
    """(topic, partition, offset) of what was produced and (the same, timestamp) of what was
    fetched."""
    produced: set[Any] = set()
    fetched: set[Any] = set()
    names = TopicNames()
    codec = dialect("kafka")
    for exchange in transcript.exchanges:
        if exchange.response is None or exchange.response.body is None or exchange.fell_back:
            continue
        api = codec.api(exchange.api_key, exchange.api_version)
        body: Any = api.response.from_json(exchange.response.body, exchange.api_version)
        names.learn(body, exchange.api_version)
        forms = forms_at(api, exchange.api_version)
        if exchange.api_key not in (0, 1) or forms is None:
            continue
        for part in forms.response.split(body, exchange.api_version, names):
            place = (part.key.topic, part.key.partition)
            if exchange.api_key == 0:
                produced.add((*place, part.steps[-1].base_offset))
                continue
            for batch in RecordBatches(part.steps[-1].records, allow_partial=True):
                fetched |= {(*place, each.offset, each.timestamp) for each in batch}
    return produced, fetched


def strangers(mock: MockCluster) -> list[str]:
    """Answers, of all in the journal, that name what their request did not name."""
    codec, names = dialect("kafka"), TopicNames()
    asked: dict[Any, set[Any]] = {}
    found = []
    for entry in mock.journal.select():
        if entry.direction == "event" or entry.api_key is None or entry.api_version is None:
            continue
        api = codec.api(entry.api_key, entry.api_version)
        forms = forms_at(api, entry.api_version)
        if forms is None:
            continue
        exchange = (entry.connection_id, entry.correlation_id)
        if entry.direction == "request":
            _, request = codec.decode_request(entry.raw)
            parts = forms.request.split(request, entry.api_version, names)
            asked[exchange] = {each.key for each in parts}
            continue
        _, body = codec.decode_response(
            entry.raw, api_key=entry.api_key, api_version=entry.api_version
        )
        names.learn(body, entry.api_version)
        for part in forms.response.split(body, entry.api_version, names):
            if not {part.key, *part.key.wider} & asked[exchange]:
                found.append(f"{api.name} {part.key}")
    return found


@pytest.mark.slow  # a process of its own
@pytest.mark.parametrize("run", range(RUNS))
async def test_each_topic_is_answered_with_its_own(transcript: Transcript, run: int) -> None:
    require_module("confluent_kafka")
    mock = MockCluster(brokers=4, profile="kafka-4.1")
    mock.replay(transcript)
    async with mock:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.mockbroker.replay.confluent_program", mock.bootstrap,
            *[f"{name}:{count}" for name, count in TOPICS.items()], stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 0, f"librdkafka aborted: {process.returncode}"
    told = json.loads(output)
    produced, fetched = said_in(transcript)
    delivered = {tuple(each) for each in told["delivered"]}
    consumed = {tuple(each) for each in told["consumed"]}
    assert {each[:2] for each in delivered} == PLACES
    assert delivered <= produced
    assert {each[:2] for each in consumed} == PLACES
    assert consumed <= fetched
    assert strangers(mock) == []
    assert mock.journal.select(event="replay-miss") == []
