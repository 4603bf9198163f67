"""The adapter in C reads and writes lines by itself: texts of any bytes, numbers of 64 bits,
several calls at once, and lines that make no sense."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kspec.client_catalog import client
from kspec.runner.adapters import ProcessAdapter
from mockbroker import MockCluster
from tests.kspec.fixed_answers import raw_line
from tests.kspec.which import program

pytestmark = pytest.mark.slow


@pytest.fixture
async def adapter() -> AsyncIterator[ProcessAdapter]:
    started = await program(client("librdkafka")).start()
    assert isinstance(started, ProcessAdapter)
    try:
        yield started
    finally:
        await started.stop()
    assert started._process.returncode == 0


async def connected(adapter: ProcessAdapter, mock: MockCluster, **options: Any) -> None:
    answer = await raw_line(
        adapter, "connect", bootstrap=mock.bootstrap, timeout_ms=20_000, client_id="c", **options
    )
    assert answer["ok"], answer


async def test_records_of_any_bytes_come_out_as_they_are(adapter: ProcessAdapter) -> None:
    values = [b"a\x00\n\"\\\x7f", "\u00fc\u20ac\U0001f600".encode(), b"", None, b"\xff\xfe",
              b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]  # fmt: skip
    async with MockCluster(topics=["foo=1"]) as mock:
        for value in values:
            mock.produce("foo", key=value, value=value)
        await connected(adapter, mock)
        await raw_line(adapter, "assign", offsets={"foo-0": 0})
        answer = await raw_line(adapter, "poll", records=len(values), ms=30_000)
    expected: list[Any] = []
    for value in values:
        try:
            expected.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            assert value is not None
            expected.append({"hex": value.hex()})
    assert [record["key"] for record in answer["result"]] == expected
    assert [record["value"] for record in answer["result"]] == expected


async def test_offsets_of_64_bits_are_exact(adapter: ProcessAdapter) -> None:
    high = 2**53 + 1
    row = {"partitionIndex": 0, "errorCode": 0, "timestamp": -1, "offset": high, "leaderEpoch": 0}
    async with MockCluster(topics=["foo=1"]) as mock:
        mock.fault(api=2, reply={"topics": [{"name": "foo", "partitions": [row]}]})
        await connected(adapter, mock)
        answer = await raw_line(adapter, "list_offsets", times={"foo-0": "latest"})
    assert answer["result"] == {"foo-0": high}


async def test_several_calls_run_at_once(adapter: ProcessAdapter) -> None:
    """One that waits does not hold up the others."""
    calls = [
        {"op": "poll", "records": 1, "ms": 30_000},
        {"op": "produce", "records": [{"topic": "foo", "partition": 0, "value": "a"}]},
        {"op": "describe_cluster"},
        {"op": "no_such_call"},
    ]
    async with MockCluster(topics=["foo=1"], named_controller="leader") as mock:
        await connected(adapter, mock, producer={"delivery_timeout_ms": 30_000})
        await raw_line(adapter, "assign", offsets={"foo-0": 0})
        answer = await raw_line(adapter, "together", calls=calls)
    polled, produced, described, unknown = answer["result"]
    assert [record["value"] for record in polled["result"]] == ["a"]
    assert produced["result"] == [{"topic": "foo", "partition": 0, "offset": 0}]
    assert described["result"] == {"brokers": [1, 2, 3], "controller": 1}
    assert unknown == {"unsupported": "librdkafka has no public call for no_such_call"}


@pytest.mark.parametrize(
    ("op", "members"),
    [
        ("assign", {"offsets": {"foo": 0}}),
        ("assign", {"offsets": {"foo-": 0}}),
        ("assign", {"offsets": {"foo-0": 2**60}}),  # not exact in a double
        ("position", {"partitions": "foo-0"}),
        ("position", {"partitions": ["foo-99999999999"]}),
        ("produce", {"records": [{"topic": "foo", "value": 5}]}),
        ("produce", {"records": [{"topic": "foo", "value": "a\x00b"}]}),
        ("poll", {}),
        ("subscribe", {}),
        ("describe_configs", {"resources": ["foo"]}),
        ("alter_configs", {"configs": {"foo:bar": {}}}),
        ("list_offsets", {"times": {"foo-0": "never"}}),
        ("list_groups", {"states": "Stable"}),
        ("alter_offsets", {"offsets": {"foo-0": 0}}),
        ("delete_offsets", {"group": "g", "partitions": [1]}),
        ("create_acls", {"acls": ["allow User:alice read"]}),
        ("create_acls", {"acls": ["permit User:alice read topic:foo"]}),
        ("describe_acls", {"filter": 1}),
        ("describe_acls", {"filter": "any any any planet:foo"}),
        ("delete_acls", {"filters": ["any any fly topic:foo"]}),
        ("together", {"calls": 1}),
    ],
)
async def test_what_makes_no_sense_is_the_adapters_error(
    adapter: ProcessAdapter, op: str, members: dict[str, Any]
) -> None:
    async with MockCluster(topics=["foo=1"]) as mock:
        await connected(adapter, mock)
        answer = await raw_line(adapter, op, **members)
        assert set(answer) == {"adapter_error"}, answer
        assert answer["adapter_error"]["message"]
        after = await raw_line(adapter, "list_topics")
        assert after["result"] == ["foo"]


async def test_what_is_no_call_is_the_adapters_error(adapter: ProcessAdapter) -> None:
    assert adapter._process.stdin is not None
    for line in (b"{\n", b"[]\n", b"{}\n", b'{"op": "list_topics"}\n', b'{"op": "poll"}\n'):
        adapter._process.stdin.write(line)
        await adapter._process.stdin.drain()
        answer = await adapter._line(60, "an answer")
        assert set(answer) == {"adapter_error"}, (line, answer)
    assert await raw_line(adapter, "close") == {"ok": True, "result": None, "raw": "null"}


@pytest.mark.parametrize(
    ("options", "op", "answer"),
    [
        ({"producer": {"none": 1}}, "send", {"unsupported": "librdkafka has no option for none"}),
        (
            {"consumer": {"assignors": ["range", "sticky"]}},
            "unsubscribe",
            {"unsupported": "librdkafka has no assignor sticky"},
        ),
        (
            {"producer": {"acks": 7000}},
            "send",
            {
                "ok": False,
                "error": "error_code",
                "code": None,
                "message": "RD_KAFKA_CONF_INVALID: Configuration property "
                '"request.required.acks" value 7000 is outside allowed range -1..1000\n',
            },
        ),
    ],
)
async def test_an_option_that_the_client_lacks_or_refuses(
    adapter: ProcessAdapter, options: dict[str, Any], op: str, answer: dict[str, Any]
) -> None:
    async with MockCluster(topics=["foo=1"]) as mock:
        await connected(adapter, mock, **options)
        assert await raw_line(adapter, op, records=[]) == answer, json.dumps(answer)
