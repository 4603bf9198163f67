"""The report: what it says is what the tables say, and nothing in them becomes markup."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kproto.errors import MissingExtraError
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    FetchRequest,
    FetchResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.elect_leaders_request import TopicPartitions
from kproto.messages.fetch_request import FetchTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.records import Record, build_batch
from tests.captures.reading import file_of
from tests.support.full import quick
from tests.wiredump.commands import wiredump
from tests.wiredump.rows.tabled import connection, connections_of, exchange
from tests.wiredump.spark.made_up import capture
from wiredump.audit import Observed, audit
from wiredump.model import Anomaly, Exchange, Item, Place
from wiredump.questions.answers import answer
from wiredump.questions.database import FolderTables
from wiredump.questions.saved import question
from wiredump.readers.round_trips import RoundTrips
from wiredump.readers.tally import EndTally, Tally
from wiredump.report.answers import MOST_LISTED, QUESTIONS
from wiredump.report.measured import measure
from wiredump.report.page import SECTIONS, page
from wiredump.report.requests import MOST_EXAMPLES, Client, measure_requests
from wiredump.rows.schema import SCHEMA_VERSION, TABLES
from wiredump.tables.reading import InputError
from wiredump.tables.table_rows import TableRows
from wiredump.tables.table_writer import TableWriter

HOSTILE = "<script>alert(1)</script>\" onload='x' $\\frac{1}{ &amp; \u202e\x00]]>"


def written(
    folder: Path, items: list[Item], tables: tuple[str, ...] = tuple(TABLES)
) -> FolderTables:
    rows = TableRows(tables=tables)
    with TableWriter(folder, tables) as writer:
        for item in items:
            writer.add(rows.add(item))
        account = {"payload": 12345, "frames": 12345, "retransmitted": 0, "anomalies": 0}
        source = (0, HOSTILE, "capture", 99, 10**9, 2 * 10**9)
        writer.add(rows.end(connections_of(items), [source], account))
    return FolderTables(str(folder))


def hello(at: int, client_id: str, error: int = 0) -> Item:
    request = ApiVersionsRequest(client_software_name="acc", client_software_version="1.0")
    offered = ApiVersion(api_key=18 if error else 3, min_version=0, max_version=2 if error else 9)
    answer = ApiVersionsResponse(error_code=error, api_keys=[offered])
    return exchange(request, answer, 3, at=at, client_id=client_id)


def metadata(at: int, took: int = 1, client_id: str = "c") -> Item:
    return exchange(
        MetadataRequest(topics=None), MetadataResponse(), 9, at=at, took=took, client_id=client_id
    )


def reassignment(at: int, topic: str, client_id: str = "c") -> Item:
    partition = ReassignablePartition(partition_index=0, replicas=[1, 2])
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[partition])]
    )
    answer = AlterPartitionReassignmentsResponse(error_code=41, error_message=HOSTILE)
    return exchange(request, answer, 0, at=at, client_id=client_id)


def election(at: int, topic: str) -> Item:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=topic, partitions=[0])])
    return exchange(request, ElectLeadersResponse(), 2, at=at, client_id=HOSTILE)


def operating(at: int, name: str) -> list[Item]:
    """A rebalance, a transaction, records, and an old version, of which the client is throttled."""
    joined = JoinGroupResponse(generation_id=1, protocol_name=name, member_id=name)
    records = build_batch([Record(value=b"v")], producer_id=7, producer_epoch=0, base_sequence=0)
    data = PartitionProduceData(index=0, records=records)
    produced = ProduceRequest(
        transactional_id=name, acks=-1,
        topic_data=[TopicProduceData(name=name, partition_data=[data])],
    )  # fmt: skip
    fetched = FetchRequest(topics=[FetchTopic(topic=name)])
    return [
        exchange(JoinGroupRequest(group_id=name, reason=name), joined, 9, at=at, client_id=name),
        exchange(
            produced, ProduceResponse(throttle_time_ms=1500), 9, at=at + 2, client_id=name
        ),
        exchange(fetched, FetchResponse(throttle_time_ms=20), 3, at=at + 4, client_id=name),
    ]  # fmt: skip


class _Page(HTMLParser):
    """Well nested, and what it has."""

    VOID = ("meta", "br", "hr", "img", "link", "input", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: dict[str, int] = {}
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def check(text: str) -> _Page:
    """What holds for every page."""
    found = _Page(text)
    assert found.tags["script"] == 1, "the page's own, which its policy allows by its hash"
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert not {"button", "link", "iframe", "object", "img", "base", "form"} & set(found.tags)
    assert len(set(found.ids)) == len(found.ids)
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("href", "src", "xlink:href"):
            assert value is not None
            assert value.startswith("#")
            assert value[1:] in found.ids
    for place in re.findall(r"url\(([^)]*)\)", text):
        assert place.startswith("#")
        assert place[1:] in found.ids
    assert "\x00" not in text
    assert "\u202e" not in text
    assert set(SECTIONS) <= set(found.ids)
    assert found.tags["main"] == found.tags["h1"] == found.tags["nav"] == 1
    return found


@pytest.mark.slow
def test_nothing_from_the_wire_becomes_markup(tmp_path: Path) -> None:
    items = [
        hello(1, HOSTILE),
        hello(2, HOSTILE, error=35),
        metadata(4, client_id=HOSTILE),
        reassignment(6, HOSTILE, HOSTILE),
        election(8, HOSTILE),
        *operating(10, HOSTILE),
        Anomaly(HOSTILE, HOSTILE, Place(0, 1), 5, None),
    ]
    found = check(page(measure(written(tmp_path / "t", items)), HOSTILE))
    assert "<script>alert(1)</script>" in found.words
    for name in ("traffic", "latency", "errors", "reassignments"):
        assert f"plot-{name}" in found.ids
    for name in (
        "unsupported", "elections", "anomalies", "account", "lineage", "client-0",
        "errors-by-client",
        "slow-clients", "slow-brokers", "rebalances", "transactions", "hot-partitions",
        "top-talkers", "throttling", "upgrade",
    ):  # fmt: skip
        assert f"table-{name}" in found.ids
    assert "12,345 bytes of TCP payload, 12,345 accounted for" in found.words


@pytest.mark.slow
def test_without_any_traffic_there_is_a_page(tmp_path: Path) -> None:
    found = check(page(measure(written(tmp_path / "t", []))))
    assert "svg" not in found.tags
    assert "None." in found.words


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_any_one_table_is_enough(tmp_path: Path, name: str) -> None:
    items = [hello(1, "c"), metadata(3), reassignment(5, "foo"), election(7, "foo")]
    found = check(page(measure(written(tmp_path / "t", items, (name,)))))
    shown = {each for each, (_, needs, _) in SECTIONS.items() if needs == name}
    missing = found.words.count("was not made")
    assert missing == len(SECTIONS) - len(shown)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=quick(20, 6))
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=60))
def test_percentiles_are_those_of_the_latencies(
    tmp_path_factory: pytest.TempPathFactory, waited: list[int]
) -> None:
    items = [metadata(number, took) for number, took in enumerate(waited)]
    folder = written(tmp_path_factory.mktemp("t") / "t", items, ("requests",))
    (found,) = measure_requests(folder).latencies
    assert (found.answers, found.greatest) == (len(waited), max(waited) * 10**9)
    for quantile, value in found.quantiles.items():
        exact = sorted(waited)[math.ceil(len(waited) * quantile) - 1] * 10**9
        assert value == exact


@pytest.mark.slow
def test_counts_are_the_tables(tmp_path: Path) -> None:
    items = [hello(1, "a"), hello(3, "b", error=35), metadata(5, client_id="a"), metadata(7)]
    items.append(exchange(MetadataRequest(topics=None), None, 9, at=9))
    measured = measure(written(tmp_path / "t", items))
    requests = measured.requests
    assert (requests.total, requests.failed, requests.unanswered) == (5, 1, 1)
    assert [(each.api, each.version, each.requests) for each in requests.traffic] == [
        ("Metadata", 9, 3), ("ApiVersions", 3, 2),
    ]  # fmt: skip
    assert requests.clients[0] == Client(
        "acc", "1.0", "a", 2, {"ApiVersions": {3: 1}, "Metadata": {9: 1}}
    )
    assert requests.errors is not None
    assert {name: sum(row) for name, row in requests.errors.counts.items()} == {
        "UNSUPPORTED_VERSION": 1
    }
    assert measured.offered[3] == {(0, 9): 1}
    (found,) = measured.answers["unsupported"].answer.records()
    assert (found["event"], found["client"], found["times"]) == ("fell back", "acc 1.0 · b", 1)


@pytest.mark.slow
def test_saved_questions_are_answered_as_by_the_command(tmp_path: Path) -> None:
    items = operating(1, "ours")
    measured = measure(written(tmp_path / "t", items))
    for name in QUESTIONS:
        asked = measured.answers[name]
        assert asked.answer == answer(FolderTables(str(tmp_path / "t")), question(name).query)
        assert asked.total == len(asked.answer.rows)
    found = {name: asked.answer.rows for name, asked in measured.answers.items()}
    ((group, protocol, generation, outcome, *_),) = found["rebalances"]
    assert (group, protocol, generation, outcome) == ("ours", "classic", 1, "in progress")
    ((transactional_id, *_, partitions, _, requests, _),) = found["transactions"]
    assert (transactional_id, partitions, requests) == ("ours", 1, 1)
    assert [(row[1], row[3], row[4]) for row in found["throttling"]] == [
        ("Produce", 1, 1500),
        ("Fetch", 1, 20),
    ]
    ((topic, partition, produced, *_),) = found["hot-partitions"]
    assert (topic, partition) == ("ours", 0)
    assert produced > 60
    words = check(page(measured)).words
    for text in (
        "ours",
        "in progress",
        "1,500",
        "kafka-4.4 would refuse requests of 1 of 1 clients",
    ):
        assert text in words


@pytest.mark.slow
def test_an_upgrade_breaks_what_the_audit_says(tmp_path: Path) -> None:
    items = [*operating(1, "ours"), metadata(9)]
    folder = written(tmp_path / "t", items)
    found = measure(folder).upgrade
    assert found.left_out == 0
    refused = [(each.api, each.version, each.requests) for each in found.audit.refused[0].refused]
    assert refused == [("Fetch", 3, 1)]
    assert sum(client.requests for client in found.audit.clients) == len(items)
    expected = Observed()
    for table in Observed.TABLES:
        for row in answer(FolderTables(str(tmp_path / "t")), f"SELECT * FROM {table}").records():
            expected.add(table, row)
    assert found.audit == audit(expected.clients(), found.audit.release)


@pytest.mark.slow
def test_files_of_several_writers_are_one_table(tmp_path: Path) -> None:
    """As Spark leaves them: many parts, other files beside them."""
    for number in range(3):
        written(tmp_path / f"t{number}", [metadata(number * 10 + 1)])
        place = tmp_path / "all" / "requests" / f"day={number}"
        place.mkdir(parents=True)
        part = tmp_path / f"t{number}" / "requests" / "part-0.parquet"
        part.rename(place / "part-0.parquet")
    (tmp_path / "all" / "requests" / "_SUCCESS").touch()
    assert measure(FolderTables(str(tmp_path / "all"))).requests.total == 3


@pytest.mark.slow
def test_long_lists_are_cut_and_say_so(tmp_path: Path) -> None:
    anomalies = [
        Anomaly("gap", f"number {n}", Place(0, n), 10**9 + n) for n in range(MOST_LISTED + 7)
    ]
    measured = measure(written(tmp_path / "t", list(anomalies)))
    assert [row["reason"] for row in measured.answers["anomalies"].answer.records()] == [
        f"number {n}" for n in range(MOST_LISTED)
    ]
    assert (
        f"The first {MOST_LISTED} of {MOST_LISTED + 7}; 7 rows are not shown."
        in check(page(measured)).words
    )


@pytest.mark.slow
def test_an_error_leads_to_its_requests(tmp_path: Path) -> None:
    items = [hello(number, f"client {number}", error=35) for number in range(1, 60, 2)]
    items += [metadata(61), reassignment(63, "foo")]
    measured = measure(written(tmp_path / "t", items))
    errors = measured.requests.errors
    assert errors is not None
    assert sum(errors.counts["UNSUPPORTED_VERSION"]) == 30
    clients = [row["client_id"] for row in errors.examples["UNSUPPORTED_VERSION"]]
    assert clients == [f"client {number}" for number in range(1, 2 * MOST_EXAMPLES, 2)]
    text = page(measured)
    found = check(text)
    links = re.findall(r'<a href="#(error-\d+)">([A-Z_]+)</a>', text)
    assert dict(links)["error-0"] == "UNSUPPORTED_VERSION"
    for name, error in links:
        assert f"table-{name}" in found.ids
        assert f"Requests with {error}: " in found.words
    assert (
        f"The first {MOST_EXAMPLES} of 30; {30 - MOST_EXAMPLES} rows are not shown." in found.words
    )


@pytest.mark.slow
def test_a_capture_of_many_clients_and_topics_has_a_bounded_page(tmp_path: Path) -> None:
    """Each list is cut, and says how many rows it hides."""
    items = [reassignment(3 * at, f"topic-{at}", f"client-{at}") for at in range(3000)]
    text = page(measure(written(tmp_path / "t", items, ("requests", "reassignments"))))
    assert len(text) < 2_000_000
    words = check(text).words
    assert f"The first {MOST_LISTED} of 3,000; 2,500 rows are not shown." in words
    assert "The busiest 200 of 3,000; 2,800 clients are not shown." in words


# ---- the command ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path: Path, capsys: Any) -> None:
    written(tmp_path / "t", [hello(1, "c"), metadata(3)])
    out = tmp_path / "report.html"
    ended = wiredump(capsys, "report", str(tmp_path / "t"), "--out", str(out), "--title", "Ours")
    assert ended == (0, "", "")
    found = check(out.read_text(encoding="utf-8"))
    assert found.words.count("Ours") == 2
    code, text, _ = wiredump(capsys, "report", str(tmp_path / "t"), "--out", "-", "--title", "Ours")
    assert code == 0
    assert text == out.read_text(encoding="utf-8")  # the same tables, the same page


@pytest.mark.slow
def test_captures_are_as_good_as_their_tables(tmp_path: Path, capsys: Any) -> None:
    """By one process and by several, and nothing is left of the tables."""
    made = tmp_path / "a.pcap"
    made.write_bytes(capture(8, connections=9, exchanges=8, share=0.3))
    paths = [str(made), str(file_of("kafka-2.4.1-everyday-1"))]
    assert wiredump(capsys, "table", *paths, "--out", str(tmp_path / "t"))[0] == 0
    pages = [
        wiredump(capsys, "report", *what, "--out", "-")
        for what in ([str(tmp_path / "t")], paths, [*paths, "--jobs", "2"])
    ]
    assert pages[0][0] == 0
    assert pages[1][:2] == pages[0][:2]
    assert pages[2] == pages[1]
    code, _, err = wiredump(capsys, "report", str(tmp_path / "t"), paths[0], "--out", "-")
    assert (code, err.count("must be the only source")) == (2, 1)


def test_what_cannot_be_is_one_line(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad" / "requests").mkdir(parents=True)
    (tmp_path / "bad" / "requests" / "part-0.parquet").write_bytes(b"no parquet at all")
    for folder, told in (
        ("none", "does not exist: name captures, or a folder of tables"),
        ("empty", "has no tables"),
        ("bad", "part-0.parquet"),
    ):
        out = tmp_path / "out.html"
        code, _, err = wiredump(capsys, "report", str(tmp_path / folder), "--out", str(out))
        assert code == 1
        assert told in err
        assert err.count("\n") == 1
        assert not out.exists()

    def absent() -> None:
        raise MissingExtraError("tables need pyarrow", extra="wiredump")

    monkeypatch.setattr("wiredump.cli.report.require_pyarrow", absent)
    code, _, err = wiredump(capsys, "report", str(tmp_path), "--out", "-")
    assert (code, err) == (1, "wiredump: tables need pyarrow: pip install 'kproto[wiredump]'\n")


def test_another_version_of_the_schema_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    folder = written(tmp_path / "t", [metadata(1)])
    monkeypatch.setattr("wiredump.tables.reading._READABLE", ["98", "99"])
    told = f"has version {SCHEMA_VERSION} of the tables' schema, but this release reads versions 98"
    with pytest.raises(InputError, match=told):
        measure(folder)


@pytest.mark.slow
def test_without_matplotlib_it_says_what_to_install(tmp_path: Path) -> None:
    written(tmp_path / "t", [metadata(1)])
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from wiredump.cli import main\n"
        f"main(['report', {str(tmp_path / 't')!r}, '--out', '-'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr == "wiredump: a report needs matplotlib: pip install 'kproto[wiredump]'\n"


@pytest.mark.slow
def test_what_became_of_packets_is_told_by_connection(tmp_path: Path) -> None:
    """All together, and those with the most first; of journals, which have no packets, nothing."""
    items: list[Item] = []
    for number, tally in enumerate((
        Tally(
            EndTally(retransmitted=2, retransmitted_bytes=2_400_000),
            EndTally(
                retransmitted=1, retransmitted_bytes=100_000,
                measured=RoundTrips(9, 1_000_000, 2_000_000, 7_000_000),
            ),
            handshake_ns=30_000,
        ),
        Tally(
            EndTally(out_of_order=1, holes=3),
            EndTally(missing_bytes=9, zero_windows=4, resets=1, measured=RoundTrips(1, 5, 5, 5)),
        ),
        Tally(handshake_ns=50_000), None,
    )):  # fmt: skip
        found = metadata(1 + number)
        assert isinstance(found, Exchange)
        found.connection = connection(number)
        found.connection.tally = tally
        items.append(found)
    network = measure(written(tmp_path / "t", items)).network
    assert (network.connections, network.troubled) == (4, 2)
    assert network.totals["retransmitted_bytes"] == 2_500_000
    assert network.handshakes == (30_000, 30_000, 50_000)
    assert [row["connection"] for row in network.worst] == [1, 0]
    shown = page(measure(FolderTables(str(tmp_path / "t"))))
    assert '<section id="network"' in shown
    assert network.round_trips == {"broker": (5, 5, 7_000_000)}
    assert "2,500,000 (2,400,000 + 100,000)" in shown
    assert "data of the brokers was acknowledged by the clients" in shown
    assert "data of the clients" not in shown
    assert "2 of 4 connections had" in shown
