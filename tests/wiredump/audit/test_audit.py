"""Who a release would refuse, and what they would ask instead, as far as the traffic shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kproto.client import Connection
from kproto.journal import Journal, JournalWriter
from kproto.messages import ListPartitionReassignmentsRequest, MetadataRequest
from kproto.schema.releases import load_releases, release
from mockbroker import MockCluster
from tests.support.toolchain import require_module
from wiredump.audit import Observed, audit
from wiredump.cli import cli
from wiredump.model import Exchange
from wiredump.rows.exchanges import rows_of
from wiredump.sources import open_sources

LOGS = Path(__file__).parents[2] / "captures" / "request_logs"


def asked(connection: int, key: int, version: int, **more: Any) -> dict[str, Any]:
    row = {
        "connection": connection, "client_id": "app", "software_name": "lib",
        "software_version": "1", "api_key": key, "api_version": version, "dialect": "kafka",
    }  # fmt: skip
    return {**row, **more}


def offered(connection: int, key: int, lowest: int, highest: int) -> dict[str, Any]:
    row = asked(connection, key, 0, event="offered", lowest=lowest, highest=highest)
    return row


def instead(requests: list[dict[str, Any]], offers: list[dict[str, Any]], to: str) -> list[Any]:
    observed = Observed()
    for row in offers:
        observed.add("negotiations", row)
    for row in requests:
        observed.add("requests", row)
    found = audit(observed.clients(), release(to))
    return [
        (each.version, each.instead.version, each.instead.why)
        for client in found.clients
        for each in client.refused
    ]


def test_versions_that_were_seen_are_what_would_be_used() -> None:
    # kafka-4.1 serves Fetch from version 4 on.
    requests = [asked(0, 1, 3), asked(1, 1, 11), asked(1, 1, 4)]
    assert instead(requests, [], "kafka-4.1") == [(3, 11, "seen")]


def test_another_client_of_the_same_library_shows_it_too() -> None:
    requests = [asked(0, 1, 3), asked(1, 1, 11, client_id="other")]
    assert instead(requests, [], "kafka-4.1") == [(3, 11, "seen")]
    requests[1]["software_version"] = "2"
    assert instead(requests, [], "kafka-4.1") == [(3, None, "unknown")]


def test_what_lies_between_versions_that_were_seen_is_taken_to_be_known() -> None:
    lowest = release("kafka-4.1").apis[1].lowest
    requests = [asked(0, 1, 2), asked(1, 1, 99)]
    found = instead(requests, [], "kafka-4.1")
    assert (2, release("kafka-4.1").apis[1].highest, "between") in found
    assert lowest > 2


@pytest.mark.parametrize(("highest", "why"), [(11, "none"), (3, "unknown")])
def test_who_took_less_than_offered_knows_no_more(highest: int, why: str) -> None:
    """Took version 3 of 0 to 11: has no newer. Took 3 of 0 to 3: may have."""
    assert instead([asked(0, 1, 3)], [offered(0, 1, 0, highest)], "kafka-4.1") == [(3, None, why)]


def test_a_key_that_is_gone() -> None:
    (found,) = instead([asked(0, 45, 0)], [offered(0, 45, 0, 0)], "kafka-2.3")
    assert found == (0, None, "none")


def test_what_is_never_refused() -> None:
    """ApiVersions falls back; telemetry is up to configuration; brokers are no clients."""
    requests = [asked(0, 18, 99), asked(0, 71, 0), asked(0, 4, 7), asked(0, 63, 1)]
    assert instead(requests, [], "kafka-4.1") == []


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 3, 45, 46]), st.integers(0, 20))),
    st.sampled_from(sorted(load_releases())),
)
def test_nobody_is_refused_what_the_release_serves(
    heard: list[tuple[int, int, int]], to: str
) -> None:
    observed = Observed()
    for connection, key, version in heard:
        observed.add("requests", asked(connection, key, version))
    found = audit(observed.clients(), release(to))
    served = release(to).apis
    refused = {(each.api_key, each.version) for client in found.refused for each in client.refused}
    unserved = {
        (key, version)
        for _, key, version in heard
        if key not in served or version not in served[key]
    }
    assert refused == unserved
    for client in found.refused:
        for each in client.refused:
            if each.instead.version is not None:
                assert each.served is not None
                assert each.instead.version in each.served


# ---- the command -----------------------------------------------------------------------------


@pytest.fixture
async def journal(tmp_path: Path) -> Path:
    """A client against a mock of 3.9: reassignments listed, and Metadata."""
    path = tmp_path / "old.jsonl"
    with path.open("w", encoding="utf-8") as lines:
        sink = Journal(sink=JournalWriter(lines).write)
        async with MockCluster(brokers=1, profile="kafka-3.9", journal=sink) as mock:
            host, port = mock.addresses[1].split(":")
            async with await Connection.open(host, int(port), client_id="app") as broker:
                await broker.request(ListPartitionReassignmentsRequest(topics=None))
                await broker.request(MetadataRequest(topics=None))
    return path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["audit", *arguments], standalone_mode=False)
    assert result.exception is None, result.exception
    return int(result.return_value), result.output


def test_the_command_says_who_and_exits_with_1(journal: Path) -> None:
    code, text = run(str(journal), "--to", "kafka-2.3", "--json")
    assert code == 1
    found = json.loads(text)
    (client,) = found["clients"]
    assert (client["client_id"], client["software"]["name"]) == ("app", "kproto")
    assert client["negotiates"] is True
    assert [(each["api"], each["served"]) for each in client["refused"]] == [
        ("Metadata", [0, 8]),
        ("ListPartitionReassignments", None),
    ]
    code, text = run(str(journal), "--to", "kafka-2.3")
    assert code == 1
    assert "ListPartitionReassignments" in text
    assert "would refuse requests of 1 of 1 clients" in text


def test_it_exits_with_0_where_nobody_is_refused(journal: Path) -> None:
    code, text = run(str(journal), "--to", "kafka-4.1")
    assert (code, text) == (0, "kafka-4.1 (4.1.2, kraft) would refuse requests of 0 of 1 clients\n")


def test_tables_say_the_same(journal: Path, tmp_path: Path) -> None:
    parquet: Any = require_module("pyarrow.parquet")
    arrow: Any = require_module("wiredump.tables.arrow")
    rows: dict[str, list[Any]] = {"requests": [], "negotiations": []}
    for item in open_sources([str(journal)]):
        if isinstance(item, Exchange):
            for table, row in rows_of(item):
                if table in rows:
                    rows[table].append(row)
    for table, each in rows.items():
        (tmp_path / "tables" / table).mkdir(parents=True)
        made = arrow.to_table(table, each)
        parquet.write_table(made, tmp_path / "tables" / table / "part-0.parquet")
    direct = run(str(journal), "--to", "kafka-2.3", "--json")
    assert run(str(tmp_path / "tables"), "--to", "kafka-2.3", "--json") == direct


def test_a_folder_without_tables_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["audit", str(tmp_path), "--to", "kafka-4.1"])
    assert result.exception is not None
    assert "has no tables" in str(result.exception)


def test_an_unknown_release_is_bad_usage() -> None:
    result = CliRunner().invoke(cli, ["audit", "x", "--to", "kafka-9.9"])
    assert result.exit_code == 2
    assert "did you mean" in result.output


def test_real_request_logs_can_be_audited() -> None:
    log = str(LOGS / "kafka-4.4.0.log")
    assert run(log, "--to", "kafka-4.4")[0] == 0
    code, text = run(log, "--to", "kafka-3.9", "--json")
    assert code == 1
    refused = {
        (client["client_id"], each["api"], each["version"])
        for client in json.loads(text)["clients"]
        for each in client["refused"]
    }
    assert ("admin", "AlterPartitionReassignments", 1) in refused
