"""Questions and the report on Spark: the answers of DuckDB, to one text of SQL."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.support.full import FULL, drawn
from tests.wiredump.known_captures import translated
from tests.wiredump.questions.operations import CAPTURE, tables_of_operations
from tests.wiredump.spark.pipeline import single
from wiredump.cli import cli
from wiredump.questions.answers import Answer, answer
from wiredump.questions.database import FolderTables
from wiredump.questions.saved import questions
from wiredump.report.answers import LISTS, QUESTIONS, ask
from wiredump.report.requests import measure_requests
from wiredump.rows.schema import ON_REQUEST, TABLES
from wiredump.tables.arrow import arrow_schema, of_file
from wiredump.tables.reading import InputError

pytestmark = [pytest.mark.slow, pytest.mark.java]

ABSENT: Final = frozenset({"attempts", "retries", "hops"})
"""Questions about what the capture does not have."""
PLAIN: Final = tuple(name for name in TABLES if name not in ON_REQUEST)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tables_of_operations(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def register(spark: Any) -> Any:
    from wiredump.spark import register

    return register


def test_a_question_has_one_answer(register: Any, spark: Any, folder: str) -> None:
    local, registered = FolderTables(folder), register(spark, folder)
    for name in drawn("questions", sorted(questions()), 3):
        query = questions()[name].query
        expected, found = answer(local, query), answer(registered, query)
        assert (found.columns, found.rows) == (expected.columns, expected.rows), name
        assert found.rows or name in ABSENT, name


def test_connections_that_were_captured_twice_are_counted_once(register: Any, spark: Any,
                                                               tmp_path: Path) -> None:  # fmt: skip
    capture = translated(7)
    (tmp_path / "a.pcap").write_bytes(capture.capture)
    single([str(tmp_path / "a.pcap")], tmp_path / "tables", tables=PLAIN)
    made = str(tmp_path / "tables")
    on_spark, tables = register(spark, made), FolderTables(made)
    count = "SELECT count(*) AS number FROM requests"
    assert answer(on_spark, count).rows == [(capture.truth.total(),)]
    for name in ("hops", "top-talkers", "versions"):
        query = questions()[name].query
        assert answer(on_spark, query).rows == answer(tables, query).rows != []


POOLS: Final[dict[str, list[Any]]] = {
    "bool": [True, False, None],
    "int16": [0, 1, 18, None],
    "int32": [0, 1, 7, None],
    "int64": [0, 1, 999, 1_500, 2_500, 1_234_500, 10**9, None],
    "string": ["", "a", "B", "é", "10.0.0.1:9092", "[::1]:9092", "NONE", "offered", None],
    "strings": [[], ["A"], ["A", "NONE"], ["THROTTLING_QUOTA_EXCEEDED", "b"], ["a", "a"], None],
    "int32s": [[], [1], [2, 1], None],
    "binary": [b"", b"\0", None],
}  # fmt: skip
"""Few values, so that much is equal, and nulls."""


MICROSECONDS: Final[dict[str, Any]] = {
    "coerce_timestamps": "us", "allow_truncated_timestamps": True,
}  # fmt: skip


def made_up(folder: Path, rng: random.Random, divided: bool) -> str:
    """Tables with any values but for keys; ``divided`` in folders by run and api, too."""
    for name in PLAIN:
        for run in ("1", "007") if divided else ("",):
            rows = [
                {
                    column.name: rng.randrange(3)
                    if column.name in ("connection", "capture")
                    else rng.choice(POOLS[column.type])
                    for column in TABLES[name].columns
                }
                for _ in range(rng.choice((0, 9, 30)))
            ]
            if name == "requests":
                for row in rows:
                    row["expected"] = True
                    row["errors"] = row["errors"] or []
                    # The name of a folder, which Spark reads wrongly beyond ASCII.
                    row["api"] = rng.choice(("Fetch", "JoinGroup", "Metadata", None))
            keyed = {tuple(row[key] for key in TABLES[name].order): row for row in rows}
            table = of_file(name, pa.Table.from_pylist(list(keyed.values()), arrow_schema(name)))
            place = folder / name / (f"run={run}" if divided else "")
            place.mkdir(parents=True, exist_ok=True)
            if divided and name == "requests":
                by = ["api", "api_key"]
                pq.write_to_dataset(table, place, partition_cols=by, **MICROSECONDS)
            else:
                pq.write_table(table, place / "part-0.parquet", **MICROSECONDS)
    return str(folder)


class Recorded(FolderTables):
    """Tables in DuckDB that keep each query with its answer."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.made: dict[str, Answer] = {}

    def answers(self, queries: Iterable[str]) -> Iterator[Answer]:
        queries = list(queries)
        for query, found in zip(queries, super().answers(queries), strict=True):
            self.made[query] = found
            yield found


@pytest.mark.parametrize("divided", [False, True])
def test_any_rows_have_one_answer(
    spark: Any, register: Any, tmp_path: Path, rng: random.Random, divided: bool
) -> None:
    """Nulls, rows that are equal but for one column, and times of ties in every table, by the
    queries of questions and of the report."""
    folder = made_up(tmp_path / "tables", rng, divided)
    local, session = Recorded(folder), register(spark, folder)
    assert set(session.names) == set(PLAIN)
    assert set(ask(local)) == {*QUESTIONS, *LISTS}
    for each in questions().values():
        answer(local, each.query)
    for query in drawn(f"queries about any rows, {divided}", list(local.made), 8):
        assert answer(session, query).rows == local.made[query].rows, query
    if FULL:
        assert measure_requests(session) == measure_requests(local)


def test_tables_by_name_and_those_that_are_missing(
    spark: Any, register: Any, folder: str, tmp_path: Path
) -> None:
    """Data frames, of which one lacks columns; other formats; a namespace; a folder without
    tables."""
    few = spark.read.parquet(f"{folder}/requests").select("api", "latency_ns")
    tables = register(spark, {"requests": few})
    assert tables.names == ["requests"]
    query = questions()["slow-apis"].query
    expected = answer(FolderTables(folder), query).rows
    assert answer(tables, query).rows == expected
    assert answer(tables, questions()["errors"].query).rows == []
    few.write.orc(str(tmp_path / "lake" / "requests"))
    assert answer(register(spark, str(tmp_path / "lake"), form="orc"), query).rows == expected
    spark.sql("CREATE DATABASE IF NOT EXISTS traffic")
    few.write.mode("overwrite").saveAsTable("traffic.requests")
    assert answer(register(spark, "traffic", form="catalog"), query).rows == expected
    with pytest.raises(InputError, match="nothing has no tables"):
        register(spark, str(tmp_path / "nothing"))


def test_files_without_timestamps(spark: Any, register: Any, folder: str, tmp_path: Path) -> None:
    """Those of schema 5, beside newer ones or alone."""
    query = "SELECT requested_ns, requested_at, responded_at FROM requests ORDER BY requested_ns"
    expected = answer(register(spark, folder), query).rows
    for name in ("requests", "lineage"):
        place = tmp_path / name
        place.mkdir()
        for number, file in enumerate(sorted(Path(folder, name).rglob("*.parquet"))):
            rows = pq.read_table(file).drop_columns(list(TABLES[name].timestamps))
            if name == "lineage":
                at = rows.schema.get_field_index("schema")
                old = pa.array([5] * rows.num_rows, rows.schema.field(at).type)
                rows = rows.set_column(at, rows.schema.field(at), old)
            pq.write_table(rows, place / f"{number}.parquet")
    assert answer(register(spark, str(tmp_path)), query).rows == expected
    assert any(row[1] is not None for row in expected)


@pytest.mark.usefixtures("spark")
def test_the_commands(folder: str, tmp_path: Path) -> None:
    """They use the session that there is, and leave it. The report is one page; its queries are
    those of ``test_any_rows_have_one_answer``."""
    query = """SELECT api, count(*) AS n, moment(min(requested_ns)) AS at
               FROM requests GROUP BY api ORDER BY n DESC, api"""
    page = tmp_path / "page"
    commands = [["ask", "throttling", folder, "--format", "json"]]
    commands += [["sql", folder, query, "--format", "json"]]
    commands += [["report", folder, "--out", str(page)]] if FULL else []
    for command in commands:
        found = []
        for options in ([], ["--spark"]):
            result = CliRunner().invoke(cli, [*command, *options])
            assert result.exit_code == 0, (result.output, result.exception)
            found.append(page.read_text() if page.exists() else result.stdout)
        assert found[0] == found[1] != "", command


@pytest.mark.usefixtures("spark")
def test_what_the_commands_refuse(folder: str, tmp_path: Path) -> None:
    single([str(CAPTURE)], tmp_path / "few", tables=("frames",))
    for arguments, told in (
        (
            ["ask", "errors", str(tmp_path / "few"), "--spark"],
            "lacks requests, bodies, topics: write the tables",
        ),
        (["sql", folder, "SELECT nope FROM requests", "--spark"], "`nope` cannot be resolved"),
        (["ask", "errors", folder, folder, "--spark"], "takes one folder of tables"),
        (["ask", "errors", folder, "--master", "local"], "need --spark"),
    ):
        refused = CliRunner().invoke(cli, arguments)
        assert told in refused.output + str(refused.exception), arguments
        assert refused.exit_code != 0
