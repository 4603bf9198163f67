"""What real brokers logged of requests: tests/captures/request_logs, and lines made from them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.journal import ClientSoftware
from wiredump.bodies import read
from wiredump.cli import main
from wiredump.model import Anomaly, Exchange
from wiredump.rows.exchanges import rows_of
from wiredump.show.exchange_view import ExchangeView
from wiredump.show.hexes import annotated
from wiredump.sources import open_sources
from wiredump.sources.request_logs import RequestLogItems

LOGS = Path(__file__).parents[2] / "captures" / "request_logs"
RELEASES = ("3.9.2", "4.4.0")


def lines_of(release: str) -> list[str]:
    return (LOGS / f"kafka-{release}.log").read_text().splitlines(keepends=True)


def exchanges_of(lines: list[str]) -> list[Exchange]:
    items = list(RequestLogItems(zone=UTC).read(lines))
    assert not [item for item in items if isinstance(item, Anomaly)]
    return [item for item in items if isinstance(item, Exchange)]


def of_client(exchanges: list[Exchange], client_id: str, *keys: int) -> list[Exchange]:
    return [
        each
        for each in exchanges
        if each.client_id == client_id and (not keys or each.api_key in keys)
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_every_line_of_a_real_log_is_an_exchange(release: str) -> None:
    lines = lines_of(release)
    exchanges = exchanges_of(lines)
    assert len(exchanges) == len(lines)
    for exchange in exchanges:
        bodies = read(exchange)
        assert bodies.request is not None
        if exchange.api_version == 99:
            assert bodies.request.problem == "version 99 is not known"
        else:
            assert bodies.request.body is not None
            assert bodies.request.problem == ""
        assert (exchange.latency_ns or 0) > 0 or not exchange.expected


@pytest.mark.parametrize(("release", "highest"), [("3.9.2", 4), ("4.4.0", 5)])
def test_an_unsupported_version_falls_back(release: str, highest: int) -> None:
    (refused,) = of_client(exchanges_of(lines_of(release)), "future")
    assert (refused.api_key, refused.api_version, refused.response_version) == (18, 99, 0)
    bodies = read(refused)
    assert [error.name for error in bodies.errors] == ["UNSUPPORTED_VERSION"]
    assert bodies.response is not None
    assert bodies.response.body is not None
    assert bodies.response.body["apiKeys"] == [
        {"apiKey": 18, "minVersion": 0, "maxVersion": highest}
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_who_asked(release: str) -> None:
    """Both forms of a connection's name: up to 3.9 it ends in one number, since 4.0 in two."""
    exchanges = exchanges_of(lines_of(release))
    admin = of_client(exchanges, "admin")
    assert {each.software for each in admin} == {ClientSoftware("kafka-python", "3.0.12"), None}
    for each in exchanges:
        for end in (each.connection.client, each.connection.broker):
            host, _, port = end.rpartition(":")
            assert host == "127.0.0.1"
            assert port.isdigit()
        assert each.connection.principal == "User:ANONYMOUS"


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_forwarded_is_told_apart(release: str) -> None:
    """Each reassignment is logged by the broker that was asked and by the controller; neither's
    connection has the other's requests."""
    altered = of_client(exchanges_of(lines_of(release)), "admin", 45)
    by_connection: dict[int, list[Exchange]] = {}
    for each in altered:
        by_connection.setdefault(each.connection.number, []).append(each)
    asked, forwarded = sorted(by_connection.values(), key=lambda them: them[0].software is None)
    assert forwarded[0].software is None
    assert asked[0].software is not None
    assert [each.correlation_id for each in asked] == [each.correlation_id for each in forwarded]
    assert asked[0].connection.broker != forwarded[0].connection.broker
    errors = [[error.name for error in read(each).errors] for each in asked]
    assert errors == [[], ["INVALID_REPLICA_ASSIGNMENT"], ["NO_REASSIGNMENT_IN_PROGRESS"]]


@pytest.mark.parametrize("release", RELEASES)
def test_without_acks_nothing_is_missing(release: str) -> None:
    (sent,) = of_client(exchanges_of(lines_of(release)), "acks0")
    assert (sent.response, sent.expected) == (None, False)
    (answered,) = of_client(exchanges_of(lines_of(release)), "producer", 0)
    assert answered.expected
    asked = read(answered).request
    assert asked is not None
    assert asked.body is not None
    # Of records a broker logs only this.
    partition = asked.body["topicData"][0]["partitionData"][0]
    assert partition == {"index": 0, "recordsSizeInBytes": 76}


@pytest.mark.parametrize("release", RELEASES)
def test_sizes_are_unknown(release: str) -> None:
    """And not 0, which would count."""
    for exchange in exchanges_of(lines_of(release)):
        frames = [row for table, row in rows_of(exchange) if table == "frames"]
        assert frames
        assert {row[3] for row in frames} == {None}


def test_passwords_are_redacted_in_what_is_shown() -> None:
    (altered, *_) = of_client(exchanges_of(lines_of("3.9.2")), "librdkafka", 51)
    shown = [row for table, row in rows_of(altered) if table == "bodies"]
    assert '"salt":"[redacted]","saltedPassword":"[redacted]"' in str(shown)


def test_times_are_the_zones() -> None:
    line = lines_of("3.9.2")[0]
    zone = timezone(timedelta(hours=2))
    (there,) = RequestLogItems(zone=zone).read([line])
    (here,) = RequestLogItems(zone=UTC).read([line])
    assert isinstance(there, Exchange)
    assert isinstance(here, Exchange)
    assert here.response is not None
    assert there.response is not None
    assert here.response.last_ns - there.response.last_ns == 2 * 3600 * 10**9
    logged = datetime.fromtimestamp(here.response.last_ns / 10**9, UTC)
    assert line.startswith(logged.strftime("[%Y-%m-%d %H:%M:%S"))


@pytest.mark.parametrize(
    ("said", "hours"), [("Z", 0), ("+02:00", 2), ("-0530", -5.5), ("", 1), (" +02:00", 1)]
)
def test_an_offset_that_a_line_says_goes_before(said: str, hours: float) -> None:
    """Right behind the time, as log4j's ISO8601_OFFSET patterns put it."""
    line = lines_of("4.4.0")[0]
    there = line.replace(line[: line.index("]")], line[: line.index("]")] + said)
    zone = timezone(timedelta(hours=1))
    (item,), (utc,) = (
        list(RequestLogItems(zone=each).read([text])) for each, text in ((zone, there), (UTC, line))
    )
    assert isinstance(item, Exchange)
    assert isinstance(utc, Exchange)
    assert item.response is not None
    assert utc.response is not None
    assert utc.response.last_ns - item.response.last_ns == hours * 3600 * 10**9


def test_zones_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the command, with the hour that summer takes."""
    log = LOGS / "kafka-4.4.0.log"
    times = []
    for zone in ("UTC", "Europe/Berlin", "Asia/Kolkata"):
        with pytest.raises(SystemExit):
            main(["show", str(log), "--limit", "1", "--json", "--no-summary", "--zone", zone])
        (shown,) = capsys.readouterr().out.splitlines()
        times.append(json.loads(shown)["timestamp_ns"])
    assert (times[0] - times[2]) / 10**9 == 5.5 * 3600
    assert (times[0] - times[1]) / 10**9 in (3600, 7200)
    with pytest.raises(SystemExit) as ended:
        main(["show", str(log), "--zone", "Middle/Earth"])
    assert ended.value.code == 2
    assert "unknown time zone 'Middle/Earth'" in capsys.readouterr().err


def test_a_log_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    """Whatever else the broker says in it."""
    log = tmp_path / "server.log"
    other = "[2026-11-22 00:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
    log.write_text(other + "".join(lines_of("4.4.0")))
    sources = open_sources([str(log)])
    assert len(list(sources)) == len(lines_of("4.4.0"))
    assert [each.kind for each in sources.read] == ["request log"]


@given(st.data())
def test_a_damaged_line_is_an_anomaly_and_the_rest_is_read(data: st.DataObject) -> None:
    lines = lines_of("4.4.0")[:6]
    which = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(lines[which].index("{") + 1, lines[which].rindex("}") - 1))
    lines[which] = lines[which][:at] + "\n"
    items = list(RequestLogItems(zone=UTC).read(lines))
    (damaged,) = [item for item in items if isinstance(item, Anomaly)]
    assert damaged.kind == "damaged"
    assert damaged.place.offset == sum(map(len, lines[:which]))
    assert len(items) == len(lines)


def test_a_hex_view_has_no_bytes_to_show() -> None:
    for exchange in exchanges_of(lines_of("4.4.0")):
        assert list(annotated(ExchangeView(exchange, None))) == []
