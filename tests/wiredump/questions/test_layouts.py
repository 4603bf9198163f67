"""Every question has the same answer in every layout of the files that any writer of ours makes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wiredump.spark.fake_session import FakeSession, faked
from tests.wiredump.spark.knowing import knowing
from wiredump.questions.database import FolderTables
from wiredump.questions.saved import questions
from wiredump.rows.schema import TABLES
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.spark.sinks import Layout
from wiredump.tables.reading import table_files

KEYS = (
    "date", "hour", "api", "requests.client_id", "frames.sasl", "connections.client", "api_key",
    "anomalies.kind", "error", "topic", "partition", "requests.api_version", "batches.requested_ns",
)  # fmt: skip
RUNS = ("first", "second")
WRITTEN = tuple(name for name in TABLES if name != "packets")
OF_ROWS = tuple(
    f"SELECT {', '.join(names)}, run, count(*) AS rows FROM {name} GROUP BY ALL"
    for name, table in TABLES.items()
    for names in [[f'"{each}"' for each in (*(c.name for c in table.columns), *table.timestamps)]]
    if name in WRITTEN
)
OF_TIMES = tuple(
    f"SELECT date, hour, run, count(*) AS rows FROM {name} GROUP BY ALL"
    for name in WRITTEN
    if TABLES[name].timestamps
)
JOINED = (
    "SELECT r.run, r.api, c.client, count(*) AS rows FROM requests r JOIN connections c "
    "USING (run, connection) GROUP BY ALL ORDER BY ALL",
)
QUERIES = (*(each.query for each in questions().values()), *OF_ROWS, *OF_TIMES, *JOINED)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("captures") / "a.pcap"
    path.write_bytes(knowing())
    return str(path)


@pytest.fixture(scope="module")
def session() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield faked(patch)


def write(session: FakeSession, capture: str, out: Path, run: str, by: Sequence[str]) -> None:
    options = Options(out=str(out), paths={0: capture}, tables=WRITTEN, run=run)
    layout = Layout(partition_by=tuple(by))
    job = Job(options=options, split_bytes=1 << 20, partitions=2, mode="append", layout=layout)
    job.run(session)  # type: ignore[arg-type]


def without_timestamps(out: Path, run: str) -> None:
    """Make the files those of a release that wrote fewer columns."""
    for name in WRITTEN:
        for file in table_files(out, name):
            if f"run={run}" in str(file):
                rows = pq.ParquetFile(file).read()
                kept = [each for each in rows.schema.names if each not in TABLES[name].timestamps]
                pq.write_table(rows.select(kept), file)


def asked(out: Path) -> list[Any]:
    """The answers; rows of one answer are sorted, because most queries leave ties."""
    found = FolderTables(str(out)).answers(QUERIES)
    return [(each.columns, sorted(map(repr, each.rows))) for each in found]


@pytest.fixture(scope="module")
def expected(session: FakeSession, capture: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("expected") / "out"
    for run in RUNS:
        write(session, capture, out, run, ())
    found = asked(out)
    assert sum(bool(rows) for _, rows in found) > len(found) / 2
    return found


layouts = st.lists(st.sampled_from(KEYS), max_size=3, unique=True)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(by=st.tuples(layouts, layouts), is_old=st.tuples(st.booleans(), st.booleans()))
def test_layouts_do_not_change_an_answer(
    session: FakeSession, capture: str, expected: Any, tmp_path_factory: pytest.TempPathFactory,
    by: tuple[list[str], list[str]], is_old: tuple[bool, bool],
) -> None:  # fmt: skip
    """Two runs in one folder, each in a layout of its own, new files beside old ones."""
    out = tmp_path_factory.mktemp("layout") / "out"
    for run, keys, old in zip(RUNS, by, is_old, strict=True):
        write(session, capture, out, run, keys)
        if old:
            without_timestamps(out, run)
    for query, found, wanted in zip(QUERIES, asked(out), expected, strict=True):
        assert found == wanted, query
