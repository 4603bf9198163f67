"""Tables as Parquet: what is read back is what was written, and the command around it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from kproto.capture import JournalCapture
from kproto.errors import MissingExtraError
from kproto.journal import Entry, JournalWriter
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockbroker import MockCluster
from tests.mockbroker.wire import connect
from tests.wiredump.commands import wiredump
from tests.wiredump.rows.tabled import Tables, connections_of, named
from tests.wiredump.talk import delivered, listen, talks
from wiredump.cli import main
from wiredump.model import Item
from wiredump.rows.schema import ON_REQUEST, SCHEMA_VERSION, TABLES, UNDECODED
from wiredump.sources import open_sources
from wiredump.tables.arrow import arrow_schema
from wiredump.tables.publishing import RUNS, OutputError
from wiredump.tables.reading import InputError, TableFolder
from wiredump.tables.table_rows import TableRows
from wiredump.tables.table_writer import TableWriter
from wiredump.tables.writer import RowGroups


@pytest.fixture(scope="module")
def journal() -> list[Entry]:
    async def talk() -> list[Entry]:
        mock = MockCluster(brokers=4, topics=["foo=1,2,3"], clock="manual")
        async with mock, connect(mock) as wire:
            hello = ApiVersionsRequest(client_software_name="acc", client_software_version="1.2")
            await wire.ask(hello, 3)
            for _ in range(5):
                await wire.ask(MetadataRequest(topics=None), 12)
            partition = ReassignablePartition(partition_index=0, replicas=[4])
            topic = ReassignableTopic(name="foo", partitions=[partition])
            await wire.ask(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
            await wire.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        return list(mock.journal)

    return asyncio.run(talk())


@pytest.fixture(scope="module")
def capture(journal: list[Entry], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "talk.pcapng"
    writer = JournalCapture()
    path.write_bytes(writer.start() + b"".join(writer.add(entry) for entry in journal))
    return path


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(talks())
def test_what_is_read_is_what_was_written(tmp_path_factory, said) -> None:
    folder = tmp_path_factory.mktemp("tables") / "out"
    rows = TableRows()
    items = listen(delivered(said))
    found = [row for item in items for row in rows.add(item)]
    found += rows.end(connections_of(items), [], {"a": 1})
    with TableWriter(folder) as writer:
        writer.add(found)
    for name, expected in named(found).items():
        read = pq.read_table(folder / name)
        times = TABLES[name].timestamps
        assert read.drop_columns(list(times)).to_pylist() == expected
        for at, source in times.items():
            assert read.schema.field(at).type == pa.timestamp("us", tz="UTC")
            found_us = [each.value if each.is_valid else None for each in read[at]]
            assert found_us == [ns and ns // 1000 for ns in read[source].to_pylist()]
    assert writer.rows == {name: sum(row[0] == name for row in found) for name in TABLES}


@pytest.mark.parametrize("name", TABLES)
def test_files_carry_their_documentation(name: str) -> None:
    schema = arrow_schema(name)
    assert schema.metadata[b"wiredump.schema"] == str(SCHEMA_VERSION).encode()
    assert [field.metadata[b"doc"].decode() for field in schema] == [
        column.doc for column in TABLES[name].columns
    ]
    assert set(TABLES[name].order) <= set(schema.names)


@pytest.mark.parametrize("step", [1, 7, 64, 1 << 20])
def test_no_cut_of_a_file_into_reads_changes_a_row(capture, step, monkeypatch) -> None:
    def rows() -> Tables:
        sources = open_sources([str(capture)])
        made = TableRows()
        found = [row for item in sources for row in made.add(item)]
        return named([*found, *made.end(sources.connections, sources.read, sources.account)])

    whole = rows()
    from wiredump.readers import capture as reading

    original = reading.Capture.__init__

    def cut(self, source, **options):
        original(self, source, **{**options, "read_size": step})

    monkeypatch.setattr(reading.Capture, "__init__", cut)
    assert rows() == whole


def test_the_command_writes_counts_and_accounts(capture, tmp_path, capsys) -> None:
    out = str(tmp_path / "tables")
    code, text, _ = wiredump(capsys, "table", str(capture), "--out", out, "--json")
    assert code == 0
    told = json.loads(text)
    assert set(told["rows"]) == set(TABLES) - ON_REQUEST
    for name, count in told["rows"].items():
        assert pq.read_table(f"{out}/{name}").num_rows == count
    account = told["bytes"]
    assert account["payload"] == account["frames"] > 0
    kept = pq.read_table(f"{out}/account").to_pylist()
    assert {row["what"]: row["bytes"] for row in kept} == account
    frames = pq.read_table(f"{out}/frames").column("size").to_pylist()
    assert sum(frames) == account["frames"]
    (row,) = pq.read_table(f"{out}/reassignments").to_pylist()
    assert (row["topic"], row["target"], row["outcome"]) == ("foo", [4], "in progress")


def test_a_journal_may_be_older_than_the_capture_before_it(
    journal, capture, tmp_path, capsys
) -> None:
    lines = tmp_path / "talk.jsonl"
    with lines.open("w", encoding="utf-8") as file:
        writer = JournalWriter(file)
        for entry in journal:
            writer.write(msgspec.structs.replace(entry, timestamp_ns=entry.timestamp_ns - 10**15))
    out = str(tmp_path / "both")
    code, text, err = wiredump(
        capsys, "table", str(capture), str(lines), str(lines), "--out", out, "--json"
    )
    assert (code, err) == (0, "")
    told = json.loads(text)
    assert told["late"] == 0
    assert told["rows"]["reassignments"] == told["rows"]["lineage"] == 3
    rows = pq.read_table(f"{out}/reassignments").to_pylist()
    assert {row["outcome"] for row in rows} == {"in progress", "replaced"}
    kinds = pq.read_table(f"{out}/lineage").column("kind").to_pylist()
    assert kinds == ["capture", "journal", "journal"]


@pytest.mark.slow
def test_a_terminal_sees_how_far_it_is(capture, tmp_path) -> None:
    """And standard output has none of it."""
    leader, follower = os.openpty()
    command = [sys.executable, "-m", "wiredump", "table", str(capture), "--json"]
    try:
        done = subprocess.run(
            [*command, "--out", str(tmp_path / "t")],
            stdout=subprocess.PIPE,
            stderr=follower,
            timeout=60,
            check=True,
            env={**os.environ, "TERM": "xterm"},
        )
        assert b"reading" in os.read(leader, 65536)
    finally:
        os.close(leader)
        os.close(follower)
    assert json.loads(done.stdout)["bytes"]["payload"] > 0


def test_tables_are_chosen(capture, tmp_path, capsys) -> None:
    out = tmp_path / "some"
    code, text, _ = wiredump(
        capsys, "table", str(capture), "--out", str(out), "--tables", "requests,frames"
    )
    assert code == 0
    names = sorted(each.name for each in out.iterdir())
    assert names == ["_SUCCESS", "_manifests", "frames", "requests"]
    assert "requests" in text
    out = tmp_path / "headers"
    assert wiredump(capsys, "table", str(capture), "--out", str(out), "--no-bodies")[0] == 0
    names = [each.name for each in out.iterdir() if each.name[0] != "_"]
    assert set(names) == set(UNDECODED) - ON_REQUEST


def test_what_cannot_be_is_one_line(capture, tmp_path, capsys, monkeypatch) -> None:
    out = str(tmp_path / "out")
    for arguments, code, told in (
        (("--tables", "nothing"), 2, "no table 'nothing'"),
        (("--tables", ","), 2, "at least one"),
        (("--tables", "bodies", "--no-bodies"), 2, "--no-bodies"),
        (("--dialect", "klingon"), 1, "klingon"),
        (("--memory", "much"), 2, "'much' is not a size; use a number with a unit, such as 512MB"),
        (("--memory", "512"), 2, "'512' is not a size"),
        (("--memory", "-1GB"), 2, "not a size"),
        (("--memory", "0MB"), 2, "0MB is too little; the minimum is 1MB"),
    ):
        got, text, err = wiredump(capsys, "table", str(capture), "--out", out, *arguments)
        assert (got, text) == (code, "")
        assert told in err
        assert err.count("\n") == 1
    assert not Path(out).exists()
    got, _, err = wiredump(capsys, "table", str(tmp_path / "none"), "--out", out)
    assert got == 1
    assert "none" in err
    got, _, err = wiredump(capsys, "table", str(capture), "--out", str(tmp_path.parent))
    assert got == 1
    assert "is not empty" in err

    def absent() -> None:
        raise MissingExtraError("tables need pyarrow", extra="wiredump")

    monkeypatch.setattr("wiredump.cli.table.require_pyarrow", absent)
    got, _, err = wiredump(capsys, "table", str(capture), "--out", out)
    assert got == 1
    assert err == "wiredump: tables need pyarrow: pip install 'kproto[wiredump]'\n"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(OutputError, match="is not empty"):
        TableWriter(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_a_run_that_is_interrupted_leaves_nothing(tmp_path, capture, monkeypatch) -> None:
    """Whatever ends it, and also where the last file cannot be finished."""

    def interrupted(self: TableRows, item: Item) -> NoReturn:
        raise KeyboardInterrupt

    def full(self: RowGroups) -> NoReturn:
        raise OSError(28, "No space left on device")

    there = tmp_path / "there"
    there.mkdir()
    for out in (tmp_path / "new", there):
        for owner, name, broken in ((TableRows, "add", interrupted), (RowGroups, "close", full)):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, broken)
                with pytest.raises(SystemExit) as ended:
                    main(["table", str(capture), "--out", str(out)])
            assert ended.value.code
            assert out.exists() == (out is there)
    assert list(there.iterdir()) == []
    with pytest.raises(SystemExit) as ended:
        main(["table", str(capture), "--out", str(there)])
    assert not ended.value.code
    names = {each.name for each in there.iterdir()}
    assert names == {*TABLES, "_SUCCESS", "_manifests"} - ON_REQUEST


@pytest.mark.slow
def test_a_process_of_its_own_imports_no_numpy(tmp_path, capture) -> None:
    """It takes longer to import than the rest of what writes tables."""
    program = (
        "import sys\n"
        "from wiredump.__main__ import main\n"
        f"sys.argv[1:] = ['table', {str(capture)!r}, '--out', {str(tmp_path / 't')!r}]\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    assert not {'numpy', 'pandas'} & {n for n, m in sys.modules.items() if m}\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_tables_that_are_not_finished_are_none_to_readers(tmp_path, capture) -> None:
    """What a run that was killed leaves."""
    program = (
        "import os, sys\n"
        "from wiredump.cli import main\n"
        "from wiredump.tables.table_rows import TableRows\n"
        "TableRows.end = lambda *arguments: os._exit(9)\n"
        f"main(['table', {str(capture)!r}, '--out', {str(tmp_path / 't')!r}])"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 9
    assert [each.name for each in (tmp_path / "t").iterdir()] == [RUNS]
    with pytest.raises(InputError, match="has no tables"):
        TableFolder(str(tmp_path / "t"))
