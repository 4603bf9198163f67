"""``wiredump sql``: which tables a query reads, what it may be, and how its answer is printed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kproto.errors import MissingExtraError
from tests.captures.reading import file_of, read
from tests.support.toolchain import require_module
from wiredump.cli import cli
from wiredump.questions import database
from wiredump.questions.answers import QueryError, answer
from wiredump.questions.database import FolderTables, tables_of
from wiredump.rows.schema import TABLES
from wiredump.tables.arrow import arrow_schema

CAPTURE = "mock-4.4"


def output(*arguments: str) -> str:
    require_module("duckdb")
    result = CliRunner().invoke(cli, ["sql", *arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


@pytest.mark.slow
def test_every_table_can_be_queried() -> None:
    require_module("duckdb")
    for name, table in TABLES.items():
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        assert tables_of(f"select {columns}, run from {name}") == (name,)


def test_the_tables_of_a_query() -> None:
    require_module("duckdb")
    query = """with slow as (select * from Requests where latency_ns > 1)
               select b.body from slow s join bodies b using (run, connection)
               where connection in (select connection from connections)"""
    assert tables_of(query) == ("connections", "requests", "bodies")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("selec 1", "syntax error"),
        ("select 1", "reads none of the tables"),
        ("select * from nothing", "Did you mean"),
        ("select nope from requests", '"nope" not found'),
        ("delete from requests", "Only SELECT"),
        ("", "the query is empty"),
    ],
)
def test_a_query_that_cannot_be_answered(query: str, told: str) -> None:
    require_module("duckdb")
    with pytest.raises(QueryError, match=told) as refused:
        tables_of(query)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_formats() -> None:
    source = str(file_of(CAPTURE))
    query = "select api, count(*) as n, min(latency_ns) as l from requests group by 1 order by 1"
    objects = [json.loads(line) for line in output(source, query, "--format", "json").splitlines()]
    assert sum(each["n"] for each in objects) == len(read(CAPTURE).exchanges)
    (head, *lines) = csv.reader(io.StringIO(output(source, query, "--format", "csv")))
    assert head == ["api", "n", "l"]
    assert [line[:2] for line in lines] == [[each["api"], str(each["n"])] for each in objects]
    table = output(source, query).splitlines()
    assert table[0].split() == head
    assert len(table) == 1 + len(objects)


def test_lists_times_and_nulls() -> None:
    source = str(file_of(CAPTURE))
    query = "select errors, moment(0) as t, ms(1500000) as d, null as x from requests limit 1"
    found = json.loads(output(source, query, "--format", "json"))
    assert isinstance(found.pop("errors"), list)
    assert found == {"t": "1970-01-01 00:00:00.000000", "d": 1.5, "x": None}


def test_a_folder_that_lacks_a_table(tmp_path: Path) -> None:
    require_module("duckdb")
    out = str(tmp_path / "tables")
    made = ["table", str(file_of(CAPTURE)), "--out", out, "--tables", "frames"]
    assert CliRunner().invoke(cli, made).exit_code == 0
    refused = CliRunner().invoke(cli, ["sql", out, "select * from requests"])
    assert "lacks requests: write the tables again" in str(refused.exception)


def test_folders_named_after_values(tmp_path: Path) -> None:
    """As `wiredump spark --partition-by` writes them: files lack these columns."""
    require_module("duckdb")
    for run, api, key, client in (("007", "Fetch", 1, "a"), ("1", "Metadata", 3, "b")):
        row = {each.name: None for each in TABLES["requests"].columns} | {"client_id": client}
        row |= {"api": api, "api_key": key}
        table = pa.Table.from_pylist([row], arrow_schema("requests"))
        place = tmp_path / "requests" / f"run={run}"
        pq.write_to_dataset(table, place, partition_cols=["api", "api_key"])
    query = "select run, api, api_key, client_id from requests order by all"
    found = answer(FolderTables(str(tmp_path)), query)
    assert found.rows == [("007", "Fetch", 1, "a"), ("1", "Metadata", 3, "b")]
    assert found.types == ("VARCHAR", "VARCHAR", "SMALLINT", "VARCHAR")


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    require_module("duckdb")
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / "part.parquet").write_text("text")
    with pytest.raises(QueryError, match=r"not the tables of a run: .*part\.parquet"):
        answer(FolderTables(str(tmp_path)), "select * from requests")


def test_a_folder_beside_a_capture_is_refused(tmp_path: Path) -> None:
    refused = CliRunner().invoke(
        cli, ["sql", str(tmp_path), str(file_of(CAPTURE)), "select * from requests"]
    )
    assert "must be the only source" in refused.output


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="queries need duckdb"):
        database.require_duckdb()
