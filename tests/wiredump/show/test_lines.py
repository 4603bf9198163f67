"""What people read, to the letter."""

from __future__ import annotations

import base64

import pytest

from tests.wiredump.show import examples
from tests.wiredump.talk import KAFKA, Piece
from wiredump.model import Exchange
from wiredump.show.exchange_view import ExchangeView
from wiredump.show.lines import LineWriter

ENDS = "10.0.0.1:50000 > 10.0.0.2:9092"


def lines(pieces: list[Piece], **how) -> list[str]:
    secrets = how.pop("secrets", False)
    writer = LineWriter(**how)
    return [
        writer.exchange(ExchangeView(item, secrets=secrets)).plain
        if isinstance(item, Exchange)
        else writer.anomaly(item).plain
        for item in examples.listen(pieces)
    ]


def test_a_reassignment_refused() -> None:
    assert lines(examples.HELLO + examples.REFUSED, width=110)[1] == (
        f"0.002000 c0 kafka-python 3.0.12 (acc) {ENDS} AlterPartitionReassignments v0 #5 "
        '{"timeoutMs":60000,"topics":[{"name":"foo","partitions":['
        '{"partitionIndex":0,"replicas":null},{"partitionInde… '
        "-> 1.0 ms NO_REASSIGNMENT_IN_PROGRESS foo-0: None is in progress.; "
        "INVALID_REPLICA_ASSIGNMENT foo-1"
    )


def test_api_versions_falls_back() -> None:
    said = '{"clientSoftwareName":"kafka-python","clientSoftwareVersion":"3.0.12"}'
    assert lines(examples.FALLBACK) == [
        f"0.000000 c0 kafka-python 3.0.12 (acc) {ENDS} ApiVersions v4 #1 {said} "
        "-> 1.0 ms [falls back to v0] UNSUPPORTED_VERSION"
    ]


def test_produce_that_wants_no_answer() -> None:
    assert lines(examples.PRODUCE) == [
        f"0.000000 c0 (acc) {ENDS} Produce v7 #6 "
        '{"transactionalId":null,"acks":0,"timeoutMs":1,"topicData":[]} -> none wanted (acks=0)'
    ]


def test_a_password_is_not_shown() -> None:
    shown = [
        f'0.000000 c0 (acc) {ENDS} SaslAuthenticate v2 #7 {{"authBytes":"[redacted]"}} '
        '-> 1.0 ms {"errorCode":0,"errorMessage":"","authBytes":"","sessionLifetimeMs":5}'
    ]
    assert lines(examples.PLAIN) == shown
    (asked_for,) = lines(examples.PLAIN, secrets=True)
    assert '{"authBytes":"AHVzZXIAaHVudGVyMi1pcy1uby1wYXNzd29yZA=="}' in asked_for


def test_a_bare_token_is_not_shown_either() -> None:
    assert lines(examples.BARE)[1] == (
        f'0.002000 c0 (acc) {ENDS} SASL token {{"authBytes":"[redacted]"}} '
        '-> 1.0 ms {"authBytes":""}'
    )


def test_a_frame_that_the_capture_cut() -> None:
    assert lines(examples.CUT, width=60) == [
        f"0.002000 c0 {ENDS} !! gap (responses): 102 bytes missing: lost [capture 0, byte 224]",
        f'0.000000 c0 (acc) {ENDS} Metadata v9 #9 {{"topics":null,"allowAutoTopicCreation":true,'
        '"includeCluste… -> 1.0 ms {"throttleTimeMs":0,"brokers":[{"nodeId":0,"host":"h0","por… '
        "!! cut: 40 of 142 bytes; brokers[2].node_id: bytes needed: 4, left: 0 (at byte 40)",
        f"0.001000 c0 {ENDS} !! cut (responses at byte 0): 102 of the frame's 142 bytes are "
        "missing [capture 0, byte 124]",
    ]


def test_no_answer_and_a_client_id_that_means_harm() -> None:
    assert lines(examples.UNANSWERED)[0] == (
        f'0.000000 c0 (evil\\x1b[31m\\r\\n) {ENDS} Metadata v0 #10 {{"topics":[]}} '
        "-> !! no answer was seen"
    )


def test_answers_out_of_order_and_unasked() -> None:
    first, second = examples.versions(3, 1), examples.versions(3, 2)
    answers = [
        examples.answered(examples.ApiVersionsResponse(), 3, number) for number in (2, 1, 77)
    ]
    told = lines([first, second, *answers], width=1)
    assert " ApiVersions v3 #2 … -> 1.0 ms [out of order] …" in told[0]
    assert " ApiVersions v3 #1 … -> 3.0 ms …" in told[1]
    assert told[2] == (
        f"0.004000 c0 kafka-python 3.0.12 {ENDS} !! no request was seen #77 -> 16 bytes"
    )


def test_long_bytes_are_counted() -> None:
    """Unless whole bodies are asked for."""
    topic = KAFKA.message("ProduceRequest.TopicProduceData")
    partition = KAFKA.message("ProduceRequest.PartitionProduceData")
    for size, text in ((30, "A" * 40), (31, "(31 bytes)"), (32, "(32 bytes)"), (33, "(33 bytes)")):
        data = [topic(name="t", partition_data=[partition(records=bytes(size))])]
        body = examples.ProduceRequest(acks=0, timeout_ms=1, topic_data=data)
        (line,) = lines([examples.asked(body, 7, 1)])
        assert f'{{"index":0,"records":"{text}"}}' in line
        (whole,) = lines([examples.asked(body, 7, 1)], width=None)
        assert base64.b64encode(bytes(size)).decode() in whole


def test_dates() -> None:
    assert lines(examples.PRODUCE, dates=True)[0].startswith("1970-01-01T00:00:00.000000Z c0 ")
    writer = LineWriter(dates=True)
    assert writer.time(1_700_000_000_123_456_789) == "2023-11-14T22:13:20.123456Z"
    assert writer.time(2**63 - 1).startswith("2262-04-11T")
    assert writer.time(10**30) == f"{10**21}.000000"


@pytest.mark.parametrize("count", [5, 6])
def test_many_errors_are_counted(count: int) -> None:
    topic = examples._TOPIC(
        name="t",
        partitions=[examples._PARTITION(partition_index=n, error_code=85) for n in range(count)],
    )
    body = examples.AlterPartitionReassignmentsResponse(error_code=41, responses=[topic])
    (line,) = lines([examples.REFUSED[0], examples.answered(body, 0, 5)])
    assert "-> 1.0 ms NOT_CONTROLLER; NO_REASSIGNMENT_IN_PROGRESS t-0; " in line
    assert line.endswith(f"t-3; and {count - 4} more errors")
