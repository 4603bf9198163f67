"""What producers and consumers are judged by: rows of partitions, batches, logs, and results."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kproto.errors import MissingExtraError
from kproto.records import Compression, Record, build_batch
from kspec.answers import Answer
from kspec.case_parser import parse_case
from kspec.errors import CaseError, KspecError
from kspec.judge import Judgement, judge
from kspec.partition_rows import batches, named_topics, rows, text_of
from kspec.produced_records import produced_records
from kspec.runner.clients import Local
from kspec.runner.schedule import run
from kspec.traffic import CallRecord, Evidence
from tests.kspec.test_judge import case, entry
from tests.support.codecs import without

BATCH = build_batch(
    [Record(timestamp=0, value=b"a  "), Record(timestamp=0, key=b"\xff", value=None)],
    compression=Compression.GZIP,
    base_offset=5,
    producer_id=7,
    producer_epoch=1,
    base_sequence=3,
)


def test_a_codec_that_is_missing_here_is_no_damage() -> None:
    data = build_batch([Record(value=b"a")], compression=Compression.ZSTD)
    with without("zstandard"), pytest.raises(MissingExtraError):
        batches(data)


def test_a_batch_is_what_its_header_and_its_records_say() -> None:
    (batch,) = batches(BATCH)
    assert batch == {
        "baseOffset": 5,
        "lastOffset": 6,
        "producerId": 7,
        "producerEpoch": 1,
        "baseSequence": 3,
        "codec": "gzip",
        "transactional": False,
        "control": False,
        "offsets": [5, 6],
        "keys": [None, {"hex": "ff"}],
        "values": ["a", None],
        "headers": [[], []],
    }
    assert text_of(b"a b ") == "a b"


def test_a_damaged_batch_says_so_and_one_that_is_cut_off_is_left_out() -> None:
    damaged = BATCH[:-1] + bytes([BATCH[-1] ^ 1])
    good, bad = batches(BATCH + damaged)
    assert good["values"] == ["a", None]
    assert "checksum" in bad["damaged"]
    assert batches(BATCH[:-1]) == []


def test_rows_are_found_by_the_name_or_the_id_of_the_topic() -> None:
    records = base64.b64encode(BATCH).decode()
    data = [{"index": 1, "records": records}]
    by_id = {"topicData": [{"topicId": "abc", "partitionData": data}]}
    ((name, row),) = rows(by_id, {"abc": "foo"})
    assert (name, row["records"]) == ("foo-1", batches(BATCH))
    assert [key for key, _ in rows(by_id, {})] == ["abc-1"]
    fetched = {"topics": [{"topic": "foo", "partitions": [{"partition": 2, "fetchOffset": 9}]}]}
    assert list(rows(fetched, {})) == [("foo-2", {"partition": 2, "fetchOffset": 9})]
    assert list(rows({"topics": None}, {})) == list(rows(None, {})) == []
    metadata = {"topics": [{"name": "foo", "topicId": "abc", "partitions": []}, {"name": None}]}
    assert named_topics(metadata) == {"abc": "foo"}


def test_the_records_of_a_call_are_padded_and_keep_their_order() -> None:
    assert produced_records({"values": {"foo-1": ["a", "b"]}, "bytes": 3}) == [
        {"topic": "foo", "partition": 1, "value": "a  "},
        {"topic": "foo", "partition": 1, "value": "b  "},
    ]
    given = {"records": [{"topic": "foo", "key": "k", "value": "a"}]}
    assert produced_records(given) == given["records"]
    refused: list[dict[str, Any]] = [
        {}, {"values": {}, "records": []}, {"values": {"foo": ["a"]}}, {"size": 1},
    ]  # fmt: skip
    for wrong in refused:
        with pytest.raises(KspecError):
            produced_records(wrong)


def verdict(expectation: dict[str, Any], answer: Answer, logs: dict[str, Any]) -> str:
    return judged([{"says": "it does", "result": "call", **expectation}], answer, logs).verdict


def judged(must: list[dict[str, Any]], answer: Answer, logs: dict[str, Any]) -> Judgement:
    record = CallRecord("call", "produce", 0, 0, 1.0, answer)
    return judge(case(must=must), Evidence([entry(1)], calls={"call": record}, logs=logs))


LOGS = {"foo-0": {"batches": [{"offsets": [4, 5], "values": ["a", "b"]}]}}


@pytest.mark.parametrize(
    ("outcomes", "holds"),
    [
        ([{"offset": 4}, {"offset": 5}], True),
        ([{"offset": 4}, {"offset": 4}], False),
        ([{"offset": -1}, {"offset": 5}], False),
        ([{"base_offset": 4}, {"base_offset": 4}], True),
        ([{"base_offset": 4}, {"base_offset": 6}], False),
        ([{"error": "E"}, {"offset": 5}], True),
        ([{}, {"partition": 1}], False),
    ],
)
def test_a_record_is_where_the_client_says_or_is_not(outcomes: Any, holds: bool) -> None:
    result = [{"topic": "foo", "partition": 0, **each} for each in outcomes]
    answer = Answer.of({"ok": True, "result": result}).keyed(["a", "b"])
    assert verdict({"placed": True}, answer, LOGS) == ("pass" if holds else "fail")


def test_outcomes_are_told_apart_by_the_values() -> None:
    said = {"ok": True, "result": [{"offset": 1}, {"error": "E", "code": 10}]}
    answer = Answer.of(said).keyed(["a", "b"])
    assert verdict({"outcomes": {"a": "ok", "b": "MESSAGE_TOO_LARGE"}}, answer, {}) == "pass"
    assert verdict({"success": True}, answer, {}) == "fail"
    with pytest.raises(ValueError, match="expected 1 outcomes"):
        Answer.of(said).keyed(["a"])
    failed = Answer.of({"ok": False, "error": "E"})
    assert failed.keyed(["a"]) is failed


def test_a_record_without_an_outcome_is_neither_a_success_nor_an_error() -> None:
    said = {"ok": True, "result": [{"offset": 1}, {"pending": True}]}
    answer = Answer.of(said).keyed(["a", "b"])
    assert answer.pending == ["b"]
    assert verdict({"outcomes": {"a": "ok"}}, answer, {}) == "pass"
    for wanted in ("ok", "any", ["ok", "any", "timeout"]):
        assert verdict({"outcomes": {"b": wanted}}, answer, {}) == "fail"
    for success in (True, False):
        assert verdict({"success": success}, answer, {}) == "fail"
    must = [{"says": "it has an outcome", "result": "call", "outcomes": {"b": "any"}}]
    (found,) = [each for each in judged(must, answer, {}).findings if each.broken]
    assert found.evidence.startswith("no outcome within the call's limit: b")
    assert found.severity == "crash or hang"


def test_what_was_delivered_counts_although_the_poll_failed() -> None:
    record = {"topic": "foo", "partition": 0, "offset": 0, "value": "a  "}
    for said in (
        {"ok": True, "result": [record]},
        {"ok": False, "error": "E", "records": [record]},
    ):
        answer = Answer.of(said)
        assert verdict({"delivered": {"foo-0": ["a"]}}, answer, {}) == "pass"
        assert verdict({"delivered": {"foo-0": ["a", "b"]}}, answer, {}) == "fail"


DATA = """\
title: a producer and a consumer
source: KIP-98
about: a
cluster: {brokers: 1, topics: ["foo=1"]}
client: {producer: {acks: all}, consumer: {offset_reset: earliest}}
steps:
  - {call: produce, with: {values: {foo-0: [a, b]}, bytes: 9}}
  - {call: assign, with: {offsets: {foo-0: null}}}
  - {call: poll, with: {records: 2, ms: 2000}}
  - {call: position, with: {partitions: [foo-0]}}
must:
  - {says: it writes both, result: produce, placed: true, success: true}
  - {says: it reads both, result: poll, delivered: {foo-0: [a, b]}}
  - {says: it is behind them, result: position, value: {foo-0: 2}}
  - {says: they are there, logs: {foo-0: {start: 0, values: [a, b]}}}
  - says: they are in one batch
    requests: {api: Produce, partition: foo-0, row: {records: [{values: [a, b], baseSequence: 0}]}}
    same: [producerId]
  - says: it starts where the log does
    requests: {api: Fetch, partition: foo-0, row: {fetchOffset: 0}}
must_not:
  - {says: it writes another, requests: {api: Produce, partition: foo-1}}
wrong: {by: claims-success}
"""


async def test_a_producer_and_a_consumer_are_played() -> None:
    (result,) = await run([Local("reference")], [parse_case(DATA, "x/001-x.yaml")])
    assert result.judgement.verdict == "pass", result.judgement


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{foo-0: [a, b]}, bytes", "{foo-0: [a, a]}, bytes", "must be there, and differ"),
        ("{foo-0: [a, b]}, bytes", "{foo: [a]}, bytes", "'foo' is not a partition"),
        ("partition: foo-0, row: {fetchOffset: 0}", "row: {fetchOffset: 0}", "needs the partition"),
        ("row: {records: [{values: [a, b], baseSequence: 0}]}}\n    same", "x: y}\n    same", "x"),
        ("acks: all", "acks: 2", "Invalid enum value 2"),
        ("{says: it writes both, result: produce,", "{says: it, requests: {},", "does not apply"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_case_is_told(old: str, new: str, told: str) -> None:
    assert old in DATA
    with pytest.raises(CaseError, match=told):
        parse_case(DATA.replace(old, new), "x/001-x.yaml")
