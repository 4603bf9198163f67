"""What leaves the house in a transcript, and what does not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.capture import JournalCapture
from kproto.dialects import dialect
from kproto.errors import MissingExtraError
from kproto.journal import CLOSED_BY_BROKER, CLOSED_BY_CLIENT, Entry, JournalWriter
from kproto.records import Compression, Record, RecordBatches, build_batch
from kproto.transcript import read_transcript, write_transcript
from tests.support.codecs import without
from tests.wiredump.talk import Said, say
from wiredump.cli import cli
from wiredump.extraction import Hiding, chosen, transcript_of
from wiredump.extraction.choosing import NoConnectionError
from wiredump.extraction.emptied import emptied
from wiredump.sources.journals import JournalItems

KAFKA = dialect("kafka")


def frames(key: int, version: int, asked: Any, answer: Any, number: int = 1) -> list[bytes]:
    api = KAFKA.apis[key]
    request = KAFKA.encode_request(
        api.request.from_json(asked, version),
        api_version=version,
        correlation_id=number,
        client_id="payments-app",
    )
    response = KAFKA.encode_response(
        api.response.from_json(answer, version), api_version=version, correlation_id=number
    )
    return [request, response]


def journal(*exchanges: tuple[int, int, bytes, bytes | None], connection: int = 1) -> list[Entry]:
    """Api key, version and the two frames of each, a millisecond between any two."""
    entries: list[Entry] = []
    for key, version, *both in exchanges:
        for direction, raw in zip(("request", "response"), both, strict=True):
            if raw is not None:
                number = len(entries) + 1
                entries.append(
                    Entry(
                        number, number * 10**6, 1, connection, direction, "10.0.0.7:50000", key,
                        version, 1, "payments-app", raw=raw,
                    )
                )  # fmt: skip
    return entries


def told(entries: list[Entry], hiding: Hiding | None = None, **more: Any) -> tuple[Any, str]:
    """The transcript, read back, and its text."""
    items = JournalItems()
    choices = chosen(items.read(entries))
    lines = list(write_transcript(transcript_of(choices, hiding or Hiding(), **more)))
    return read_transcript(lines), "".join(lines)


# ---- the format ------------------------------------------------------------------------------


@given(st.randoms(use_true_random=True), st.integers(1, 5))
def test_everything_that_is_not_to_be_hidden_comes_back(rng: Any, count: int) -> None:
    """Bodies as they were sent, whatever the api; of unknown tagged fields JSON has no word."""
    said: list[Said] = [say(rng, number) for number in range(count)]
    entries = journal(*((each.api_key, each.api_version, each[3], each[4]) for each in said))
    keep = Hiding(secrets_too=False, hosts=False, records=False)
    transcript, _ = told(entries, keep)
    assert len(transcript.exchanges) == count
    for exchange, each in zip(transcript.exchanges, said, strict=True):
        key, version = each.api_key, each.api_version
        api = KAFKA.apis[key]
        body = KAFKA.decode_request(each.request)[1]
        assert exchange.request.body == body.to_json_value(version)
        api.request.from_json(exchange.request.body, version)
        assert (exchange.response is None) == (each.response is None)
        if each.response is not None:
            used = exchange.response.version
            answer = KAFKA.decode_response(each.response, api_key=key, api_version=used)[1]
            assert exchange.response.body == answer.to_json_value(used)
            api.response.from_json(exchange.response.body, used)


@given(st.randoms(use_true_random=True))
def test_any_traffic_can_be_hidden_and_is_still_of_its_version(rng: Any) -> None:
    each = say(rng, 1)
    entries = journal((each.api_key, each.api_version, each.request, each.response))
    transcript, _ = told(entries, Hiding(names=True))
    (exchange,) = transcript.exchanges
    if "[redacted]" not in json.dumps(exchange.request.body):
        KAFKA.apis[each.api_key].request.from_json(exchange.request.body, each.api_version)


# ---- what is hidden --------------------------------------------------------------------------

BROKERS = [
    {"nodeId": 1, "host": "kafka-1.prod.example", "port": 9092, "rack": None},
    {"nodeId": 2, "host": "10.1.2.3", "port": 9092, "rack": None},
]


def metadata() -> tuple[int, int, bytes, bytes]:
    answer = {
        "throttleTimeMs": 0, "brokers": BROKERS, "clusterId": "c", "controllerId": 1,
        "topics": [{"errorCode": 3, "name": "orders", "isInternal": False, "partitions": []}],
    }  # fmt: skip
    asked = {"topics": [{"name": "orders"}], "allowAutoTopicCreation": False}
    return (3, 4, *frames(3, 4, asked, answer))  # type: ignore[return-value]


def refused() -> tuple[int, int, bytes, bytes]:
    answer = {
        "throttleTimeMs": 0, "errorCode": 0, "errorMessage": "ask kafka-1.prod.example:9092",
        "responses": [],
    }  # fmt: skip
    return (45, 0, *frames(45, 0, {"timeoutMs": 1, "topics": []}, answer))  # type: ignore[return-value]


def test_hosts_are_replaced_everywhere_by_the_same_names() -> None:
    transcript, text = told(journal(metadata(), refused()))
    first, second = transcript.exchanges
    assert first.response is not None
    assert second.response is not None
    (one, two), client = first.response.body["brokers"], transcript.beginning.connections[0].client
    assert second.response.body["errorMessage"] == f"ask {one['host']}:9092"
    assert len({one["host"], two["host"], client.split(":")[0]}) == 3
    assert client.endswith(":50000")
    for secret in ("prod.example", "10.1.2.3", "10.0.0.7"):
        assert secret not in text
    assert transcript.beginning.hidden == ("secrets", "hosts", "records")


def test_hosts_may_be_kept() -> None:
    transcript, _ = told(journal(metadata()), Hiding(hosts=False))
    assert transcript.exchanges[0].response.body["brokers"] == BROKERS
    assert transcript.beginning.connections[0].client == "10.0.0.7:50000"


def test_names_are_kept_unless_they_are_not_to_be() -> None:
    _, text = told(journal(metadata()))
    assert "orders" in text
    assert "payments-app" in text
    transcript, text = told(journal(metadata()), Hiding(names=True))
    assert "orders" not in text
    assert "payments-app" not in text
    (exchange,) = transcript.exchanges
    assert exchange.request.body["topics"] == [
        {"name": exchange.response.body["topics"][0]["name"]}
    ]
    # Another file has other names: nobody can try whether it is this topic.
    again, _ = told(journal(metadata()), Hiding(names=True))
    assert again.exchanges[0].request != exchange.request


def test_groups_tell_no_topics_either() -> None:
    subscription = base64.b64encode(b"\0\1\0\0\0\1\0\6orders").decode()
    asked = {
        "groupId": "billing", "sessionTimeoutMs": 1, "memberId": "payments-app-1",
        "protocolType": "c",
        "protocols": [{"name": "range", "metadata": subscription}],
    }  # fmt: skip
    answer = {
        "errorCode": 0, "generationId": 1, "protocolName": "range", "leader": "payments-app-1",
        "memberId": "payments-app-1",
        "members": [{"memberId": "payments-app-1", "metadata": subscription}],
    }  # fmt: skip
    entries = journal((11, 0, *frames(11, 0, asked, answer)))
    transcript, text = told(entries, Hiding(names=True))
    for secret in ("billing", "payments-app", subscription):
        assert secret not in text
    body = transcript.exchanges[0].response.body
    assert body["leader"] == body["memberId"] == body["members"][0]["memberId"]


def test_passwords_stay_here() -> None:
    token = base64.b64encode(b"\0alice\0hunter2").decode()
    answer = {"errorCode": 0, "errorMessage": None, "authBytes": ""}
    entries = journal((36, 0, *frames(36, 0, {"authBytes": token}, answer)))
    assert token not in told(entries)[1]
    assert token in told(entries, Hiding(secrets_too=False))[1]


# ---- records ---------------------------------------------------------------------------------

VALUES = st.none() | st.binary(max_size=40)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    magic = draw(st.sampled_from([0, 1, 2]))
    codecs = [each for each in Compression if magic == 2 or each is not Compression.ZSTD]
    start = draw(st.integers(0, 2**40))
    records = [
        Record(
            offset=start + number,
            timestamp=draw(st.integers(0, 2**41)) if magic else -1,
            key=draw(VALUES),
            value=draw(VALUES),
            headers=tuple(draw(st.lists(st.tuples(st.text(max_size=3), VALUES), max_size=2)))
            if magic == 2
            else (),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    return build_batch(records, magic=magic, compression=draw(st.sampled_from(codecs)))


def shape(record: Record) -> Any:
    def size(value: bytes | None) -> int | None:
        return None if value is None else len(value)

    headers = [(name, size(value)) for name, value in record.headers]
    return record.offset, record.timestamp, size(record.key), size(record.value), headers


@given(st.lists(batches(), max_size=3))
def test_records_keep_their_shape_and_say_nothing(several: list[bytes]) -> None:
    data = b"".join(several)
    before = [record for batch in RecordBatches(data) for record in batch]
    after = [record for batch in RecordBatches(emptied(data)) for record in batch]
    assert list(map(shape, after)) == list(map(shape, before))
    for record in after:
        for value in (record.key, record.value, *(value for _, value in record.headers)):
            assert not any(value or b"")
    for old, new in zip(RecordBatches(data), RecordBatches(emptied(data)), strict=True):
        assert (new.producer_id, new.attributes, new.max_timestamp, new.last_offset) == (
            old.producer_id, old.attributes, old.max_timestamp, old.last_offset
        )  # fmt: skip


SECRET = b"the account of alice"


def test_a_codec_that_is_missing_here_is_no_damage() -> None:
    data = build_batch([Record(value=b"a")], compression=Compression.ZSTD)
    with without("zstandard"), pytest.raises(MissingExtraError):
        emptied(data)


@given(st.data())
def test_what_is_cut_or_damaged_stays_so_and_says_nothing(data: st.DataObject) -> None:
    whole = build_batch([Record(0, 5, b"k", SECRET), Record(1, 5, b"k", SECRET)])
    at = data.draw(st.integers(61, len(whole) - 1))
    cut = emptied(whole + whole[:at])
    assert len(cut) == len(whole) + at
    assert RecordBatches(cut).incomplete == RecordBatches(whole + whole[:at]).incomplete
    assert SECRET not in cut
    damaged = bytearray(whole)
    damaged[20] ^= 1  # the checksum
    assert SECRET not in emptied(bytes(damaged))
    with pytest.raises(kproto.DecodeError, match="checksum"):
        list(RecordBatches(emptied(bytes(damaged))))
    assert SECRET not in emptied(SECRET)[61:]


def test_values_stay_here_unless_asked_for() -> None:
    records = base64.b64encode(build_batch([Record(timestamp=1, value=SECRET)])).decode()
    asked = {
        "transactionalId": None, "acks": 1, "timeoutMs": 1,
        "topicData": [{"name": "t", "partitionData": [{"index": 0, "records": records}]}],
    }  # fmt: skip
    entries = journal((0, 3, *frames(0, 3, asked, {"responses": [], "throttleTimeMs": 0})))
    assert records not in told(entries)[1]
    assert records in told(entries, Hiding(records=False))[1]


# ---- what cannot be decoded ------------------------------------------------------------------


def test_bytes_that_may_tell_are_left_out_unless_asked_for() -> None:
    key, version, request, response = metadata()
    entries = journal((key, version, request, response[:4] + response[4:-1]))
    transcript, _ = told(entries)
    said = transcript.exchanges[0].response
    assert said is not None
    assert said.raw == b""
    assert "left out" in said.problem
    assert said.body["clusterId"] == "c"  # as far as it goes
    assert told(entries, raw=True)[0].exchanges[0].response.raw == entries[1].raw
    # Of a message that can hold nothing of the kind the bytes are kept.
    key, version, request, response = refused()
    entries = journal((key, version, request, response[:-1]))
    assert told(entries)[0].exchanges[0].response.raw == response[:-1]


# ---- outcomes --------------------------------------------------------------------------------


def event(entries: list[Entry], name: str, note: str = "") -> Entry:
    number = len(entries) + 1
    return Entry(number, number * 10**6, 1, 1, "event", "10.0.0.7:50000", event=name, note=note)


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        (CLOSED_BY_BROKER, "disconnected"),
        ("", "disconnected"),
        (CLOSED_BY_CLIENT, "unanswered"),
        (None, "unknown"),
    ],
)
def test_what_a_last_request_met(ends: str | None, outcome: str) -> None:
    key, version, request, _ = refused()
    entries = journal((key, version, request, None))
    if ends is not None:
        entries.append(event(entries, "disconnected", ends))
    (exchange,) = told(entries)[0].exchanges
    assert exchange.outcome == outcome
    assert exchange.latency_ms == (1.0 if outcome == "disconnected" else None)


def test_what_was_passed_over_is_unanswered() -> None:
    key, version, request, response = refused()
    skipped = request[:8] + (99).to_bytes(4, "big") + request[12:]
    entries = journal((key, version, skipped, None), (key, version, request, response))
    assert [each.outcome for each in told(entries)[0].exchanges] == ["unanswered", "answered"]


# ---- which connection ------------------------------------------------------------------------


def test_a_number_that_is_not_there() -> None:
    entries = journal(metadata()) + journal(refused(), connection=2)
    items = JournalItems()
    with pytest.raises(
        NoConnectionError, match=r"no connection 5; there are 0 \(payments-app\), 1"
    ):
        chosen(items.read(entries), numbers=[5])
    items = JournalItems()
    with pytest.raises(NoConnectionError, match="no connection of client id 'x'"):
        chosen(items.read(entries), client_id="x")
    items = JournalItems()
    with pytest.raises(NoConnectionError, match="choose by number or client id"):
        chosen(items.read(entries))
    items = JournalItems()
    found = chosen(items.read(entries), client_id="payments-app")
    assert [choice.connection.number for choice in found] == [0, 1]


def test_the_command(tmp_path: Path) -> None:
    source, out = tmp_path / "said.jsonl", tmp_path / "one.jsonl"
    with source.open("w") as file:
        for entry in journal(metadata()) + journal(refused(), connection=2):
            JournalWriter(file).write(entry)
    command = ["extract", str(source), "--connection", "1", "--out", str(out)]
    result = CliRunner().invoke(cli, command, standalone_mode=False)
    assert result.exception is None
    transcript = read_transcript(out.read_text().splitlines(keepends=True))
    assert [each.api for each in transcript.exchanges] == ["AlterPartitionReassignments"]
    # What is wrong leaves what was there before.
    before = out.read_text()
    command[3] = "7"
    failed = CliRunner().invoke(cli, command, standalone_mode=False)
    assert isinstance(failed.exception, NoConnectionError)
    assert out.read_text() == before


def test_captures_tell_the_same(tmp_path: Path) -> None:
    """The same connections as packets; and which there are is known of captures, too."""
    entries = journal(metadata()) + journal(refused(), connection=2)
    capture = JournalCapture()
    path, out = tmp_path / "said.pcapng", tmp_path / "one.jsonl"
    path.write_bytes(capture.start() + b"".join(map(capture.add, entries)))
    command = ["extract", str(path), "--client-id", "payments-app", "--out", str(out)]
    assert CliRunner().invoke(cli, command, standalone_mode=False).exception is None
    transcript = read_transcript(out.read_text().splitlines(keepends=True))
    assert {each.api for each in transcript.exchanges} == {
        "Metadata",
        "AlterPartitionReassignments",
    }
    command[2:4] = ["--connection", "7"]
    failed = CliRunner().invoke(cli, command, standalone_mode=False)
    assert "there are 0 (payments-app), 1 (payments-app)" in str(failed.exception)
