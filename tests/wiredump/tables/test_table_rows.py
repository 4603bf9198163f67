"""Rows of made-up conversations are what was said, and no cut of the bytes changes them."""

from __future__ import annotations

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from tests.wiredump.rows.tabled import Tables, named, tables_of
from tests.wiredump.talk import KAFKA, chopped, delivered, listen, talks
from wiredump.bodies import read
from wiredump.model import Exchange
from wiredump.redact import redacted
from wiredump.rows.exchanges import rows_of
from wiredump.rows.schema import TABLES, UNDECODED
from wiredump.tables.table_rows import TableRows

TIMES = {"first_ns", "last_ns", "requested_ns", "responded_ns", "response_last_ns", "packet"}
TIMES |= {"asked_ns", "answered_ns", "first_listed_ns", "last_listed_ns", "ended_ns"}
TIMES |= {"timestamp_ns", "closed_ns", "latency_ns", "began_ns", "duration_ns"}


def timeless(tables: Tables) -> Tables:
    """The piece a byte came in is its packet, and tells its time."""
    return {
        name: [{key: value for key, value in row.items() if key not in TIMES} for row in rows]
        for name, rows in tables.items()
    }


@given(talks())
def test_requests_frames_and_bodies_are_what_was_said(said) -> None:
    tables = tables_of(listen(delivered(said)), values=True)
    rows = tables["requests"]
    assert [
        (row["api_key"], row["api_version"], row["correlation_id"], row["request_size"])
        for row in rows
    ] == [(each.api_key, each.api_version, each.correlation_id, len(each.request)) for each in said]
    assert [row["response_size"] for row in rows] == [
        None if each.response is None else len(each.response) for each in said
    ]
    assert sum(row["size"] for row in tables["frames"]) == sum(
        len(each.request) + len(each.response or b"") for each in said
    )
    told = [row for row in tables["bodies"] if row["direction"] == "request"]
    for row, each in zip(told, said, strict=True):
        _, body = KAFKA.decode_request(each.request)
        expected = redacted(row["message"], json.loads(body.to_json(each.api_version)))
        assert json.loads(row["body"]) == expected
        assert row["problem"] is None


@given(talks(), st.integers(1, 50), st.randoms(use_true_random=False))
def test_no_cut_of_the_bytes_changes_a_row(said, most: int, rng: random.Random) -> None:
    pieces = delivered(said)
    assert timeless(tables_of(listen(chopped(pieces, rng, most)))) == timeless(
        tables_of(listen(pieces))
    )


@given(talks())
def test_each_row_has_the_columns_of_its_table_and_of_their_types(said) -> None:
    kinds = {
        "bool": bool, "int16": int, "int32": int, "int64": int, "string": str, "binary": bytes,
        "strings": list, "int32s": list,
    }  # fmt: skip
    rows = TableRows()
    items = listen(delivered(said))
    for item in items:
        for name, row in rows.add(item):
            for column, value in zip(TABLES[name].columns, row, strict=True):
                assert value is None or type(value) is kinds[column.type], (name, column.name)


@given(talks())
def test_without_bodies_the_rest_is_the_same(said) -> None:
    items = listen(delivered(said))
    whole, headers = tables_of(items), tables_of(items, bodies=False)
    assert set(headers) <= set(UNDECODED)
    assert headers["frames"] == whole["frames"]
    assert [row["correlation_id"] for row in headers["requests"]] == [
        row["correlation_id"] for row in whole["requests"]
    ]


@given(talks())
def test_an_item_alone_gives_its_rows(said) -> None:
    """What Spark relies on: nobody has to have seen what came before."""
    items = listen(delivered(said))
    alone = named(row for item in reversed(items) for row in rows_of(item))
    together = tables_of(items)
    for name in ("frames", "requests", "bodies", "negotiations"):
        assert alone[name] == together[name]


@given(talks(most=3), st.sampled_from(sorted(TABLES)))
def test_one_table_is_the_same_alone(said, name: str) -> None:
    items = listen(delivered(said))
    alone = tables_of(items, tables=[name])
    assert set(alone) <= {name}
    assert alone.get(name, []) == tables_of(items).get(name, [])


def test_logged_requests_have_bodies_without_bytes() -> None:
    from wiredump.sources.request_logs import RequestLogItems

    line = (
        "[2026-01-31 12:00:00,250] DEBUG Completed request:"
        '{"requestHeader":{"requestApiKey":43,"requestApiVersion":2,"correlationId":7,'
        '"clientId":"acc"},"request":{"electionType":0,"topicPartitions":[{"topic":"foo",'
        '"partitions":[0]}],"timeoutMs":60000},"response":{"throttleTimeMs":0,"errorCode":0,'
        '"replicaElectionResults":[{"topic":"foo","partitionResult":[{"partitionId":0,'
        '"errorCode":84,"errorMessage":null}]}]},"connection":"10.0.0.2:9092-10.0.0.1:5000-0",'
        '"totalTimeMs":2.5} (kafka.request.logger)'
    )
    (item,) = RequestLogItems().read([line])
    assert isinstance(item, Exchange)
    asked = read(item).request
    assert asked is not None
    assert asked.body == {
        "electionType": 0,
        "topicPartitions": [{"topic": "foo", "partitions": [0]}],
        "timeoutMs": 60000,
    }
    tables = tables_of([item])
    (row,) = tables["requests"]
    assert row["errors"] == ["ELECTION_NOT_NEEDED"]
    assert row["problem"] is None
    assert row["latency_ns"] == 2_500_000
    (election,) = tables["elections"]
    assert (election["topic"], election["error"]) == ("foo", "ELECTION_NOT_NEEDED")
