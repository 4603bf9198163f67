"""``wiredump compact``: the rows of before, whatever the layout, wherever it is killed, and whoever
reads and writes meanwhile."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.support.full import drawn, either
from wiredump.cli import cli
from wiredump.questions.answers import answer
from wiredump.questions.database import FolderTables
from wiredump.spark.outputs import outputs_of
from wiredump.spark.sinks import Layout
from wiredump.spark.stream_folder import Settings
from wiredump.storage import Location
from wiredump.tables import compaction
from wiredump.tables.arrow import arrow_schema, of_file
from wiredump.tables.compaction import CompactionError, compact
from wiredump.tables.publishing import Part, RunManifest, RunStaging, changing, is_complete
from wiredump.tables.reading import InputError

HOUR: Final = 3_600_000_000_000
TABLES: Final = ("requests", "connections", "lineage")
TIMES: Final = {"requests": "requested_ns", "connections": "opened_ns"}
ROOT: Final = Path(__file__).parents[3]


def rows_of(rng: random.Random, table: str, count: int, first: int = 0) -> pa.Table:
    rows = [
        {
            "connection": first + number,
            "capture": 0,
            "api": rng.choice(("Fetch", "Produce", None)),
            "client": f"10.0.0.{rng.randrange(9)}",
            TIMES.get(table, "bytes"): rng.randrange(90 * HOUR),
        }
        for number in range(count)
    ]
    schema = arrow_schema(table)
    known = [{name: row[name] for name in row if name in schema.names} for row in rows]
    return of_file(table, pa.Table.from_pylist(known, schema))


def write(table: pa.Table, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place, coerce_timestamps="us", allow_truncated_timestamps=True)


def some_layout(rng: random.Random, out: Path) -> None:
    """Runs and streams, divided by keys or not, with many files in a folder or few; complete, or
    being published."""
    for run in rng.sample(["r1", "r2", "r3", ""], rng.randrange(1, 4)) or ["r1"]:
        is_stream, depth = rng.random() < 0.5, rng.randrange(3)
        manifest = RunManifest(run, rng.random() < 0.8, {})
        for table in TABLES:
            base = out / table / (f"run={run}" if run else "")
            manifest.files[table] = {}
            for number in range(rng.choice((1, 4, 12))):
                keys = (f"date=2026-01-0{rng.randrange(1, 3)}", f"hour={rng.randrange(2)}")[:depth]
                name = f"batch-{number // 2:06d}-{number:05d}.parquet"
                if not is_stream:
                    name = f"part-{rng.getrandbits(64):x}.parquet"
                file, rows = "/".join([*keys, name]), rng.choice((0, 1, 5, 400))
                write(rows_of(rng, table, rows, 10_000 * number), base / file)
                manifest.files[table][file] = rows
            if is_stream:
                write(rows_of(rng, table, 3), base.joinpath(*keys, "end-00000.parquet"))
                write(rows_of(rng, table, 0), base.joinpath(*keys, "none.parquet"))
        if not is_stream:
            place = out / "_manifests" / f"{run or 'all'}.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(msgspec.json.encode(manifest))


def files_of(out: Path) -> list[Path]:
    return sorted(each for name in TABLES for each in (out / name).rglob("*.parquet"))


def rows_in(out: Path) -> list[str]:
    """All rows with the folder that they are in, as any reader of Parquet finds them."""
    return sorted(
        f"{file.parent.relative_to(out)} {row}"
        for file in files_of(out)
        for row in pq.ParquetFile(file).read().to_pylist()
    )


def require_manifests(out: Path) -> None:
    """Complete manifests have the files that there are, with their rows."""
    for place in (out / "_manifests").glob("*.json"):
        manifest = msgspec.json.decode(place.read_bytes(), type=RunManifest)
        for table, known in manifest.files.items() if manifest.complete else ():
            base = out / table / (f"run={manifest.run}" if manifest.run else "")
            for file, rows in known.items():
                assert pq.read_metadata(base / file).num_rows == rows
            if manifest.run:
                assert set(known) == {str(each.relative_to(base)) for each in base.rglob("*.parq*")}


class Killed(BaseException):
    """Stands for kill -9: nothing that cleans up may be relied upon."""


CHANGES: Final = (
    (os, ("link", "chown", "replace")),
    (compaction, ("exchange",)),
    (Location, ("sync", "remove", "replace_bytes", "mkdir", "write_bytes", "rmdir")),
    (Path, ("mkdir",)),
    (pq.ParquetWriter, ("write_table",)),
)


class Killing:
    """Kills at a change of a file or folder: before it, or half of the time behind it."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.count, self._at, self._dead = 0, at, False
        for owner, names in CHANGES:
            for name in names:
                patch.setattr(owner, name, self._counted(getattr(owner, name)))
        remove = RunStaging.remove
        # The end of the process would unlock the folder.
        patch.setattr(
            RunStaging, "remove", lambda own: own.release() if self._dead else remove(own)
        )

    def _counted(self, real: Any) -> Any:
        def change(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            if self._dead or self.count == self._at:
                if not self._dead and self._at % 2:
                    real(*arguments, **named)
                self._dead = True
                raise Killed
            return real(*arguments, **named)

        return change


def layouts(rng: random.Random, folder: Path, count: int) -> Iterator[tuple[Path, int]]:
    for number in range(count):
        out = folder / str(number)
        some_layout(rng, out)
        yield out, rng.choice((1, 3_000, 20_000, 1 << 20))


@pytest.mark.slow
def test_rows_stay(tmp_path: Path, rng: random.Random) -> None:
    """In any layout; a second time there is nothing left, once files are as large as they get."""
    merged = 0
    for out, target in layouts(rng, tmp_path, either(40, 6)):
        before, count = rows_in(out), len(files_of(out))
        try:
            done = compact(str(out), target)
        except InputError:  # all of it is being published
            assert not any(is_complete(each.read_bytes()) for each in out.glob("_manifests/*"))
            continue
        assert rows_in(out) == before
        assert len(files_of(out)) == count - sum(each.merged - each.into for each in done.values())
        merged += sum(each.merged for each in done.values())
        require_manifests(out)
        assert not (out / "_staging").exists()
        assert not any(each.changed for each in done.values())
        while any(each.merged for each in compact(str(out), target).values()):
            assert rows_in(out) == before
    assert merged


@pytest.mark.slow
def test_killed_anywhere(tmp_path: Path, rng: random.Random) -> None:
    """Before or behind any change of a file: readers find the rows of before, and so they do when
    the command is repeated."""
    made = tmp_path / "made"
    while not any(made.glob("_manifests/*")):
        shutil.rmtree(made, ignore_errors=True)
        some_layout(rng, made)
        for manifest in made.glob("_manifests/*"):
            manifest.write_bytes(manifest.read_bytes().replace(b"false", b"true"))
    before, out = rows_in(made), tmp_path / "out"

    def killed(at: int) -> int:
        """Compact a copy, killed at a change and again; returns the number of changes."""
        shutil.copytree(made, out)
        with pytest.MonkeyPatch.context() as patch:
            killing = Killing(patch, at)
            with suppress(Killed):
                compact(str(out), 20_000)
        assert rows_in(out) == before, at
        assert (out / "_staging").exists() or not at, at
        compact(str(out), 20_000)
        assert rows_in(out) == before, at
        require_manifests(out)
        assert not (out / "_staging").exists()
        shutil.rmtree(out)
        return killing.count

    for at in drawn("kills of a compaction", range(1, killed(0)), 8):
        killed(at)


KILLED: Final = """
import os, signal, sys
from wiredump.tables import compaction
real, left = compaction.exchange, int(sys.argv[2])
def exchange(*paths):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*paths)
    if left == 1 and int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
compaction.exchange = exchange
compaction.compact(sys.argv[1], 1 << 20)
"""


@pytest.mark.slow
def test_kill_9(tmp_path: Path, rng: random.Random) -> None:
    """By the system, before and behind an exchange: the locks of the process are gone, too."""
    for number in range(either(8, 2)):
        out = tmp_path / str(number)
        for count in range(40):
            write(
                rows_of(rng, "requests", 7), out / "requests" / "run=r1" / f"part-{count}.parquet"
            )
        before = rows_in(out)
        command = [sys.executable, "-c", KILLED, str(out), "2", str(number % 2)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert (out / "_staging" / "_compact").exists()
        assert rows_in(out) == before
        compact(str(out), 1 << 20)
        assert rows_in(out) == before
        assert len(files_of(out)) == 1
        assert not (out / "_staging").exists()


@pytest.mark.slow
def test_beside_a_stream_and_readers(tmp_path: Path, rng: random.Random) -> None:
    """A stream publishes batches while the tables are compacted again and again: a reader finds all
    rows of the batches that were published, once each. Its files have the rows by batches."""
    out, batches, each = tmp_path / "out", 60, 5
    settings = Settings(
        where="", out=str(out), partitions=1, tables=("requests",), dialect="auto", ports=(),
        bodies=True, values=False, secrets=False, idle_ns=None, run="s",
        layout=Layout(partition_by=("api",)),
    )  # fmt: skip
    outputs = outputs_of(settings)
    spark: Any = None
    outputs.begin(spark, has_rows=False)
    published, problems = 0, list[str]()
    ended = threading.Event()

    def publish() -> None:
        nonlocal published
        try:
            for batch in range(batches):
                staging = tmp_path / "staging"
                file = f"api={batch % 2}/a.parquet"
                write(rows_of(rng, "requests", each, each * batch), staging / "requests" / file)
                outputs.publish(
                    spark, Location(str(staging)), [{"requests": Part(file, each)}], batch
                )
                published = batch + 1
        finally:
            ended.set()

    def read() -> None:
        query = "SELECT count(*), count(DISTINCT connection) FROM requests"
        while not ended.is_set():
            least = published * each
            ((rows, different),) = answer(FolderTables(str(out)), query).rows
            if rows != different or rows < least:
                problems.append(f"{rows} rows, {different} different ones, at least {least}")

    threads = [threading.Thread(target=each) for each in (publish, read)]
    for thread in threads:
        thread.start()
    merged = 0
    while not ended.is_set():
        merged += compact(str(out), 1 << 20)["requests"].merged
    for thread in threads:
        thread.join()
    assert problems == []
    assert published == batches
    compact(str(out), 1 << 20)
    found = ds.dataset(out / "requests", partitioning="hive").to_table(["connection"])
    assert sorted(found.column(0).to_pylist()) == list(range(batches * each))
    assert merged
    # One merged file in each folder, what may be published again, and placeholders.
    assert len(files_of(out)) <= 6


def test_a_file_that_changes_meanwhile(tmp_path: Path, rng: random.Random) -> None:
    """The folder stays as another process left it, and is named."""
    out = tmp_path / "out"
    for number in range(4):
        write(rows_of(rng, "requests", 5), out / "requests" / "run=a" / f"part-{number}.parquet")
    (out / "requests" / "run=a" / "note.txt").write_text("kept")
    changes = [lambda: (out / "requests" / "run=a" / "part-2.parquet").unlink(),
               lambda: (out / "requests" / "run=a" / "inside").mkdir()]  # fmt: skip
    real = compaction._merge
    for change in changes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                compaction, "_merge", lambda *given, change=change: (real(*given), change())
            )
            done = compact(str(out), 1 << 20)["requests"]
        assert done.changed == [str(out / "requests" / "run=a")]
        assert done.merged == 0
    (out / "requests" / "run=a" / "inside").rmdir()
    before = rows_in(out)
    assert compact(str(out), 1 << 20)["requests"].merged == 3
    assert rows_in(out) == before
    assert (out / "requests" / "run=a" / "note.txt").read_text() == "kept"


def test_rights_stay(tmp_path: Path, rng: random.Random) -> None:
    out = tmp_path / "out"
    place = out / "requests" / "run=a"
    for number in range(4):
        write(rows_of(rng, "requests", 5), place / f"part-{number}.parquet")
        (place / f"part-{number}.parquet").chmod(0o640)
    place.chmod(0o2770)
    compact(str(out), 1 << 20)
    (file,) = place.iterdir()
    assert (place.stat().st_mode & 0o7777, file.stat().st_mode & 0o777) == (0o2770, 0o640)


def test_what_is_refused(tmp_path: Path, rng: random.Random, monkeypatch: Any) -> None:
    out = tmp_path / "out"
    write(rows_of(rng, "requests", 5), out / "requests" / "a.parquet")

    def refusal(where: str = str(out)) -> str:
        with pytest.raises(CompactionError) as refused:
            compact(where, 1 << 20)
        return str(refused.value)

    assert "s3://b/t is not a local folder" in refusal("s3://b/t?scheme=http")
    staging = RunStaging(Location(str(out)), "_compact")
    assert "another process is compacting it" in refusal()
    staging.remove()
    (out / "frames" / "_delta_log").mkdir(parents=True)
    assert "compact it with --table-format delta" in refusal()
    shutil.rmtree(out / "frames")
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "exchange", fails)
        assert "cannot exchange two folders at once" in refusal()
    with monkeypatch.context() as patch:
        patch.setattr("kproto.outputs.locks.lock", lambda number, wait=False: False)
        assert "has no locks" in refusal()
    with pytest.raises(InputError, match="has no tables"):
        compact(str(tmp_path), 1)
    with changing(Location(str(out))) as is_alone:
        assert is_alone
    assert not (out / "_staging").exists()


def fails(*paths: str) -> None:
    raise OSError(22, "Invalid argument")


def test_the_command(tmp_path: Path, rng: random.Random) -> None:
    out = tmp_path / "out"
    for number in range(4):
        write(rows_of(rng, "requests", 5), out / "requests" / "run=a" / f"part-{number}.parquet")
    size = sum(file.stat().st_size for file in files_of(out))
    done = CliRunner().invoke(cli, ["compact", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "out": str(out),
        "tables": {"requests": {"merged": 4, "into": 1, "bytes": size, "changed": []}},
    }
    again = CliRunner().invoke(cli, ["compact", str(out)])
    assert again.stdout == "There are no small files to merge.\n"
    refused = CliRunner().invoke(cli, ["compact", str(out), "--master", "local"])
    assert refused.exit_code == 2
    write(rows_of(rng, "requests", 5), out / "requests" / "run=a" / "part-0.parquet")
    shown = CliRunner().invoke(cli, ["compact", str(out)]).stdout.split()
    assert shown[:9] == [
        "table",
        "files",
        "merged",
        "into",
        "bytes",
        "requests",
        "2",
        "1",
        shown[8],
    ]
