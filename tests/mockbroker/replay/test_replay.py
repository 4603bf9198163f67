"""What answers what: by meaning, most specific first; addresses are the mock's own; what was not
recorded is the mock's own affair, and journalled."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kproto.client import Connection, SaslPlain
from kproto.errors import KprotoError
from kproto.messages import FetchRequest, MetadataRequest
from kproto.transcript import (
    FORMAT,
    REDACTED,
    Exchange,
    Transcript,
    TranscriptHeader,
    TranscriptMessage,
    TranscriptTrailer,
    write_transcript,
)
from mockbroker import MockCluster
from tests.support.requests import request_of

ALL = {"topics": None, "allowAutoTopicCreation": False}
SECONDS = 20


def metadata(cluster: str, *names: str, version: int = 4) -> Exchange:
    """Topics asked for by name, answered by a cluster whose id tells which answer this was."""
    body = {
        "throttleTimeMs": 0,
        "brokers": [
            {"nodeId": 1, "host": "host-1", "port": 9092, "rack": None},
            {"nodeId": 1007, "host": "host-2", "port": 9092, "rack": None},
        ],
        "clusterId": cluster,
        "controllerId": 1007,
        "topics": [
            {"errorCode": 0, "name": name, "isInternal": False, "partitions": []} for name in names
        ],
    }
    asked = {"topics": [{"name": name} for name in names], "allowAutoTopicCreation": False}
    return exchange(3, version, asked, body)


def exchange(key: int, version: int, asked: Any, answer: Any, **more: Any) -> Exchange:
    response = None if answer is None else TranscriptMessage(version, answer)
    outcome = "answered" if answer is not None else "disconnected"
    fields = {"outcome": outcome, "response": response, **more}
    return Exchange(
        number=0,
        api_key=key,
        api_version=version,
        request=TranscriptMessage(version, asked),
        **fields,
    )


def transcript(*exchanges: Exchange) -> Transcript:
    return Transcript(TranscriptHeader(FORMAT), list(exchanges), TranscriptTrailer())


async def ask(mock: MockCluster, *bodies: Any, version: int = 4, broker: int = 1) -> list[Any]:
    """The answers to some requests on one connection, an exception where none came."""
    host, port = mock.addresses[broker].split(":")
    answers: list[Any] = []
    async with await Connection.open(
        host, int(port), negotiate=False, client_id="somebody else"
    ) as connection:
        for body in bodies:
            try:
                answer = connection.request(body, version=version)
                answers.append(await asyncio.wait_for(answer, SECONDS))
            except (KprotoError, OSError) as error:
                answers.append(error)
    return answers


def about(*names: str) -> MetadataRequest:
    return MetadataRequest.from_json(
        {"topics": [{"name": name} for name in names], "allowAutoTopicCreation": False}, 4
    )


async def clusters(recorded: Transcript, *bodies: Any, version: int = 4) -> list[str]:
    mock = MockCluster(brokers=2)
    mock.replay(recorded)
    async with mock:
        return [each.cluster_id for each in await ask(mock, *bodies, version=version)]


async def test_the_same_meaning_comes_first_then_the_order() -> None:
    recorded = transcript(
        metadata("first a", "a"), metadata("first b", "b"), metadata("second a", "a")
    )
    asked = [about("a"), about("a"), about("a"), about("b")]
    assert await clusters(recorded, *asked) == ["first a", "second a", "second a", "first b"]


async def test_every_connection_begins_at_the_beginning() -> None:
    mock = MockCluster(brokers=2)
    mock.replay(transcript(metadata("first", "a"), metadata("second", "a")))
    async with mock:
        for broker in (1, 2, 1):
            found = await ask(mock, about("a"), about("a"), broker=broker)
            assert [each.cluster_id for each in found] == ["first", "second"]


async def test_the_nearest_version_answers_in_the_version_asked() -> None:
    recorded = transcript(metadata("at 2", "a", version=4), metadata("at 7", "a", version=6))
    assert await clusters(recorded, about("a"), version=5) == ["at 2"]  # of two the lower
    assert await clusters(recorded, about("a"), version=6) == ["at 7"]
    assert await clusters(recorded, about("a"), version=9) == ["at 7"]
    # The same meaning at another version goes before another meaning at this one.
    recorded = transcript(metadata("b", "b", version=5), metadata("a", "a", version=4))
    assert await clusters(recorded, about("a"), version=5) == ["a"]


async def test_addresses_are_the_mocks_own() -> None:
    mock = MockCluster(brokers=2)
    mock.replay(transcript(metadata("it", "a")))
    async with mock:
        (found,) = await ask(mock, about("a"))
        told = {broker.node_id: f"{broker.host}:{broker.port}" for broker in found.brokers}
        # 1007 is none of the mock's: another one takes its place, always the same.
        assert told == {1: mock.addresses[1], 1007: mock.addresses[2]}
        assert found.controller_id == 1007


async def test_a_disconnect_happens_again_and_again() -> None:
    mock = MockCluster(brokers=1)
    mock.replay(transcript(exchange(60, 0, {"includeClusterAuthorizedOperations": False}, None)))
    async with mock:
        for _ in range(2):
            (found,) = await ask(mock, request_of("DescribeCluster"), version=0)
            assert isinstance(found, Exception)
        notes = [entry.note for entry in mock.journal.select(event="replayed")]
        assert notes == ["here the connection ended"] * 2


async def test_silence_stays_silence_and_holds_nothing_up() -> None:
    silent = exchange(
        60, 0, {"includeClusterAuthorizedOperations": False}, None, outcome="unanswered"
    )
    mock = MockCluster(brokers=1)
    mock.replay(transcript(silent, metadata("it", "a")))
    async with mock:
        host, port = mock.addresses[1].split(":")
        async with await Connection.open(host, int(port), negotiate=False) as connection:
            waiting = asyncio.ensure_future(connection.request(request_of("DescribeCluster"), 0))
            await asyncio.sleep(0)
            # Brokers answer in order, and so clients take a later answer for a fault of the
            # broker's: it is told, and neither request hangs.
            later = connection.request(about("a"), 4)
            done = await asyncio.wait_for(
                asyncio.gather(waiting, later, return_exceptions=True), SECONDS
            )
        assert isinstance(done[0], Exception)
        assert [entry.note for entry in mock.journal.select(event="replayed")] == [
            "here no answer came", ""
        ]  # fmt: skip


async def test_what_is_missing_is_the_mocks_own_and_journalled() -> None:
    mock = MockCluster(brokers=1, topics=["real=1"], profile="kafka-2.3")
    mock.replay(transcript(metadata("it", "a")))
    async with mock:
        (found,) = await ask(mock, request_of("ApiVersions"), version=0)
        assert {row.api_key for row in found.api_keys} == set(mock.served)
        # Not served, and not recorded: refused, as by any broker of that release.
        (found,) = await ask(mock, request_of("ListPartitionReassignments", topics=None), version=0)
        assert isinstance(found, Exception)
        missed = mock.journal.select(event="replay-miss")
        assert [entry.api_key for entry in missed] == [18, 46]
        assert {entry.note for entry in missed} == {"nothing like it was recorded"}


async def test_what_is_served_by_the_recording_alone_is_served() -> None:
    answer: Any = {"throttleTimeMs": 0, "errorCode": 41, "errorMessage": None, "topics": []}
    asked = {"timeoutMs": 1, "topics": None}
    mock = MockCluster(brokers=1, profile="kafka-2.3")
    mock.replay(transcript(exchange(46, 0, asked, answer)))
    async with mock:
        (found,) = await ask(mock, request_of("ListPartitionReassignments", topics=None), version=0)
        assert found.error_code == 41


async def test_a_body_that_is_none_of_its_version_is_a_miss() -> None:
    mock = MockCluster(brokers=1)
    mock.replay(transcript(exchange(3, 4, {"topics": []}, {"brokers": "none"})))
    async with mock:
        (found,) = await ask(mock, about())
        assert found.cluster_id == mock.cluster.state.cluster_id
        (missed,) = mock.journal.select(event="replay-miss")
        assert missed.note.startswith("the recorded answer does not fit: ")


async def test_bytes_are_sent_as_they_were_under_the_new_correlation_id() -> None:
    raw = bytes.fromhex("0000000a 00000063 000000000029")
    said = TranscriptMessage(0, None, "cut", raw)
    recorded = exchange(46, 0, {"timeoutMs": 1, "topics": None}, None)
    recorded = Exchange(
        number=0, api_key=46, api_version=0, request=recorded.request, outcome="answered",
        response=said,
    )  # fmt: skip
    mock = MockCluster(brokers=1)
    mock.replay(transcript(recorded))
    async with mock:
        await ask(mock, request_of("ListPartitionReassignments", topics=None), version=0)
        (sent,) = mock.journal.select(direction="response")
        assert sent.correlation_id is not None
        assert sent.raw == raw[:4] + sent.correlation_id.to_bytes(4, "big") + raw[8:]


async def test_secrets_that_were_taken_out_are_empty() -> None:
    answer = {"errorCode": 0, "errorMessage": None, "authBytes": REDACTED, "sessionLifetimeMs": 0}
    handshake = exchange(17, 1, {"mechanism": "PLAIN"}, {"errorCode": 0, "mechanisms": ["PLAIN"]})
    login = exchange(36, 1, {"authBytes": REDACTED}, answer)
    mock = MockCluster(brokers=1)
    mock.replay(transcript(handshake, login, metadata("it", "a")))
    async with mock:
        host, port = mock.addresses[1].split(":")
        async with await Connection.open(host, int(port), negotiate=False) as connection:
            plain = SaslPlain("anybody", "anything")
            await connection.authenticate(plain.mechanism, plain.exchange(), handshake_version=1)
            found = await asyncio.wait_for(connection.request(about("a"), 4), SECONDS)
        assert found.cluster_id == "it"


async def test_a_fetch_given_again_waits_as_brokers_do() -> None:
    """Else a consumer would do nothing but fetch. Seen by the order of what happens, not by a
    clock: the second fetch is still waiting while another connection is served."""
    body = {
        "replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0,
        "topics": [],
    }  # fmt: skip
    mock = MockCluster(brokers=1)
    mock.replay(
        transcript(
            exchange(1, 4, body, {"throttleTimeMs": 0, "responses": []}), metadata("it", "a")
        )
    )
    async with mock:
        fetch = FetchRequest.from_json({**body, "maxWaitMs": 300}, 4)
        both = asyncio.ensure_future(ask(mock, fetch, fetch))
        async with asyncio.timeout(SECONDS):
            while len(mock.journal.select(api=1, direction="request")) < 2:
                await asyncio.sleep(0.01)
        await ask(mock, about("a"))
        assert not both.done()
        assert [each.throttle_time_ms for each in await both] == [0, 0]


# ---- the command -----------------------------------------------------------------------------


@pytest.mark.slow
async def test_serve_replays_a_file(tmp_path: Path) -> None:
    file = tmp_path / "incident.jsonl"
    file.write_text("".join(write_transcript(transcript(metadata("it", "a")))))
    command = [sys.executable, "-m", "mockbroker", "serve", "--brokers", "1"]
    process: subprocess.Popen[str] = subprocess.Popen(
        [*command, "--replay", str(file)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        ready = json.loads(await asyncio.to_thread(process.stdout.readline))
        host, port = ready["bootstrap"].split(":")
        async with await Connection.open(host, int(port)) as connection:
            found = await connection.request(about("a"), 4)
        assert found.cluster_id == "it"
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, SECONDS)
        process.stdout.close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it has no lines"),
        ('{"sequence": 1}\n', "not a transcript of wiredump extract"),
        ('{"transcript": 2}\n', "a transcript of format 2; this release reads 1"),
        ('{"transcript": 1}\n', "its last line is missing"),
        ('{"transcript": 1}\n{"number": 0}\n', "line 2"),
        ('{"transcript": 1}\n{"end": true}\n{"end": true}\n', "no line may follow"),
        ('{"transcript": 1}\n' + '{"request": {"body": {"a": ' + "[" * 100_000 + "\n", "line 2"),
    ],
)
def test_a_file_that_is_none_is_bad_usage(text: str, problem: str, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from mockbroker.cli import cli

    file = tmp_path / "incident.jsonl"
    file.write_text(text)
    result = CliRunner().invoke(cli, ["serve", "--replay", str(file)])
    assert result.exit_code == 2
    assert problem in result.output
