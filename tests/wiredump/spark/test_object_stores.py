"""Jobs whose captures and tables are in an object store: the same rows as of local files, and
nothing that readers take for a table before all of it is there."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.support.object_store import Bucket
from tests.wiredump.spark import made_up
from tests.wiredump.spark.engines import running_on
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.pipeline import LOCAL, single
from wiredump.cli import main
from wiredump.rows.schema import ON_REQUEST, TABLES
from wiredump.spark.columns import RUN
from wiredump.spark.connections import Options
from wiredump.spark.job import Job, Made
from wiredump.spark.planning import plan
from wiredump.spark.sinks import Layout
from wiredump.spark.splits import read_split
from wiredump.storage import ChangedError, Location
from wiredump.tables.publishing import OutputError, RunManifest

__all__ = ["session"]

FEW = ("connections", "requests")
WANTED = tuple(name for name in TABLES if name not in ON_REQUEST)


def rows(bucket: Bucket, folder: str, names: tuple[str, ...] = LOCAL) -> dict[str, list[str]]:
    """The rows of each table, sorted."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for key in bucket.keys():  # noqa: SIM118 (not a dict)
        table = key.removeprefix(f"{folder}/").partition("/")[0]
        if key.startswith(f"{folder}/") and table in found and key.endswith(".parquet"):
            file = io.BytesIO(bucket.get(key))
            found[table] += [
                repr({each.name: row[each.name] for each in TABLES[table].columns})
                for row in pq.ParquetFile(file).read().to_pylist()
            ]
    return {name: sorted(found[name]) for name in names}


def job(bucket: Bucket, paths: list[str], tables: tuple[str, ...] = FEW, **how: Any) -> Job:
    options = Options(
        out=bucket.uri("tables"), paths=dict(enumerate(paths)), tables=tables, run="r1"
    )
    return Job(options=options, split_bytes=how.pop("split_bytes", 1 << 20), partitions=2, **how)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "back", "share", "engine", "at_once"),
    [
        ("pcap", 0.0, 0.0, "python", True),
        ("pcap", 0.3, 0.2, "quick", True),
        ("pcapng", 0.5, 0.2, "quick", False),
        ("pcapng", 0.5, 0.2, "python", False),
    ],
)
def test_the_same_rows(
    session: FakeSession, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    kind: str, back: float, share: float, engine: str, at_once: bool,
) -> None:  # fmt: skip
    if not at_once:
        monkeypatch.setattr("wiredump.spark.job._AT_ONCE", 0)
    paths, uris = [], []
    for number in range(2):
        data = made_up.capture(40 + number, kind=kind, back=back, share=share, odd=0.2)
        path = tmp_path / f"{number}.{kind}"
        path.write_bytes(data)
        paths.append(str(path))
        uris.append(bucket.put(f"in/{number}.{kind}", data))
    paths[1:], uris[1:] = [paths[1], str(path)], [uris[1], str(path)]  # one of them is local, too
    expected = single(paths, tmp_path / "one")
    with running_on(engine):
        made = job(bucket, uris, WANTED, split_bytes=6_000).run(session)
    found = rows(bucket, "tables")
    for name, each in expected.items():
        assert found[name] == each, name
    assert made.account["payload"] > 0
    assert not [key for key in bucket.keys() if "_staging" in key]  # noqa: SIM118
    assert bucket.get("tables/_SUCCESS") == b""
    manifest = msgspec.json.decode(bucket.get("tables/_manifests/r1.json"), type=RunManifest)
    assert manifest.complete
    for name, files in manifest.files.items():
        assert sum(files.values()) == made.rows[name]
        for file in files:
            assert f"tables/{name}/run=r1/{file}" in bucket.keys()  # noqa: SIM118


@pytest.mark.slow
def test_payloads_travel(bucket: Bucket, tmp_path: Path) -> None:
    """No task reads a capture of an object store by position."""
    data = made_up.capture(3, kind="pcap", share=0.0, back=0)
    (tmp_path / "a.pcap").write_bytes(data)
    for path, carried in ((bucket.put("a.pcap", data), True), (str(tmp_path / "a.pcap"), False)):
        for engine in ("python", "quick"):
            with running_on(engine):
                (split,) = plan([(0, path)], 1 << 30)
                found = [row for batch in read_split(split) for row in batch.to_pylist()]
            assert split.carried is carried
            runs = [row for row in found if row["kind"] == RUN]
            assert all((row["record"] is not None) == carried for row in runs)
            assert bool(runs) == (engine == "quick")
            others = [row for row in found if row["kind"] == 0 and row["payload_size"]]
            assert all((row["payload"] is not None) == carried for row in others)


@pytest.mark.slow
def test_a_capture_that_changes_while_it_is_read(bucket: Bucket) -> None:
    path = bucket.put("a.pcap", made_up.capture(3, kind="pcap"))
    (split,) = plan([(0, path)], 1 << 30)
    reading = read_split(split)
    next(reading)
    bucket.put("a.pcap", made_up.capture(4, kind="pcap"))
    with pytest.raises(ChangedError, match=f"s3://{bucket.name}/a.pcap changed while it was being"):
        list(reading)
    with pytest.raises(ChangedError, match="changed while"):
        list(read_split(split))


def failing(at: int) -> Callable[[Location, Location], None]:
    """A ``publish`` that fails at the ``at``-th file."""
    real, count = Location.publish, iter(range(1, 1_000))

    def publish(self: Location, target: Location) -> None:
        if next(count) == at:
            raise ConnectionResetError("the store is gone")
        real(self, target)

    return publish


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 3])
def test_a_failed_run_leaves_nothing(
    session: FakeSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    path = bucket.put("in/a.pcap", made_up.capture(5, kind="pcap"))
    with monkeypatch.context() as patch:
        patch.setattr(Location, "publish", failing(at))
        with pytest.raises(ConnectionResetError):
            job(bucket, [path]).run(session)
    assert bucket.keys() == ["in/a.pcap"]
    job(bucket, [path]).run(session)
    assert "tables/_SUCCESS" in bucket.keys()  # noqa: SIM118


@pytest.mark.slow
def test_nothing_is_visible_before(
    session: FakeSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first file of a table is published, all are written; ``_SUCCESS`` is last."""
    path = bucket.put("in/a.pcap", made_up.capture(5, kind="pcap"))
    real, seen = Location.publish, list[list[str]]()

    def publish(self: Location, target: Location) -> None:
        seen.append(bucket.keys())
        real(self, target)

    monkeypatch.setattr(Location, "publish", publish)
    monkeypatch.setattr("wiredump.tables.publishing._AT_ONCE", 1)
    job(bucket, [path]).run(session)
    visible = [key for key in seen[0] if not key.startswith(("tables/_", "in/"))]
    assert visible == []
    assert not any("tables/_SUCCESS" in keys for keys in seen)
    manifest = msgspec.json.decode(bucket.get("tables/_manifests/r1.json"), type=RunManifest)
    assert len(seen) == sum(len(files) for files in manifest.files.values())


class KilledError(BaseException):
    """Stands for kill -9."""


@pytest.mark.slow
def test_a_driver_that_is_killed_while_it_publishes(
    session: FakeSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bucket.put("in/a.pcap", made_up.capture(5, kind="pcap"))
    with monkeypatch.context() as patch:
        patch.setattr(Location, "publish", failing(3))
        patch.setattr("wiredump.tables.publishing.Publication.abandon", kill)
        patch.setattr("wiredump.tables.publishing.RunStaging.remove", kill)
        with pytest.raises(KilledError):
            job(bucket, [path]).run(session)
    assert not manifest_of(bucket).complete
    assert "tables/_SUCCESS" not in bucket.keys()  # noqa: SIM118
    made = job(bucket, [path]).run(session)
    files = manifest_of(bucket).files
    assert manifest_of(bucket).complete
    assert {name: sum(each.values()) for name, each in files.items()} == made.rows
    assert len(bucket.keys()) == 3 + sum(max(1, len(each)) for each in files.values())


def manifest_of(bucket: Bucket) -> RunManifest:
    return msgspec.json.decode(bucket.get("tables/_manifests/r1.json"), type=RunManifest)


def kill(*arguments: Any) -> None:
    raise KilledError


@pytest.mark.slow
def test_runs_beside_each_other(session: FakeSession, bucket: Bucket) -> None:
    path = bucket.put("in/a.pcap", made_up.capture(5, kind="pcap"))
    first = job(bucket, [path])
    made: list[Made] = [first.run(session)]
    assert first.run(session).rows == made[0].rows
    first.options = msgspec.structs.replace(first.options, run="r2")
    with pytest.raises(OutputError, match=r"/tables is not empty"):
        first.run(session)
    first.mode = "append"
    made.append(first.run(session))
    assert first.run(session).rows == made[0].rows
    assert made[0].rows == made[1].rows
    found = rows(bucket, "tables", ("requests",))["requests"]
    assert len(found) == 2 * made[0].rows["requests"] > 0


@pytest.mark.slow
def test_folders_and_modes(session: FakeSession, bucket: Bucket, tmp_path: Path) -> None:
    """Folders by date and api, a run beside another, and one that replaces both."""
    path = bucket.put("in/a.pcap", knowing())
    (tmp_path / "a.pcap").write_bytes(knowing())
    expected = single([str(tmp_path / "a.pcap")], tmp_path / "one", tables=FEW)
    by = {"layout": Layout(partition_by=("date", "api"))}

    def found() -> list[str]:
        out = Location(bucket.uri("tables/requests"))
        names = [each.name for each in TABLES["requests"].columns]
        made = ds.dataset(out.path, filesystem=out.filesystem, partitioning="hive").to_table(names)
        return sorted(map(repr, made.to_pylist()))

    first = job(bucket, [path], **by)
    first.run(session)
    assert found() == expected["requests"]
    folders = {key.rpartition("/")[0] for key in bucket.keys()}  # noqa: SIM118 (not a dict)
    assert any(
        re.fullmatch(r"tables/requests/run=r1/date=2.*/api=Metadata", each) for each in folders
    )
    assert any(re.fullmatch(r"tables/connections/run=r1/date=2[-\d]*", each) for each in folders)
    first.options = msgspec.structs.replace(first.options, run="r2")
    first.mode = "append"
    first.run(session)
    assert found() == sorted(2 * expected["requests"])
    last = job(bucket, [path], mode="overwrite", **by)
    last.options = msgspec.structs.replace(last.options, run="r3")
    last.run(session)
    assert found() == expected["requests"]
    keys = "\n".join(bucket.keys())
    assert set(re.findall(r"/(?:run=|_manifests/)(\w+)", keys)) == {"r3"}
    bucket.put("tables/theirs", b"")
    with pytest.raises(OutputError, match="theirs, which is not a table"):
        last.run(session)


# ---- the commands -------------------------------------------------------------------------------


@pytest.mark.slow
def test_other_commands_read_from_stores(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(2):
        data = made_up.capture(50 + number, kind="pcapng", share=0.0)
        (tmp_path / f"{number}.pcapng").write_bytes(data)
        bucket.put(f"day/{number}.pcapng", data)
    local = [str(tmp_path / f"{number}.pcapng") for number in range(2)]
    said: list[str] = []
    for sources in (local, [bucket.uri("day/*.pcapng")]):
        for arguments in (
            ["show", *sources, "--no-summary"],
            ["sql", *sources, "select count(*) from requests"],
            ["table", *sources, "--out", str(tmp_path / f"tables-{len(said)}")],
        ):
            with pytest.raises(SystemExit) as ended:
                main(arguments)
            assert not ended.value.code, arguments
            said.append(capsys.readouterr().out)
    assert said[:3] == said[3:]
    runs = {
        folder.name for folder in tmp_path.glob("tables-*/requests/run=*")
    }  # the id depends only on the contents
    assert len(runs) == 1


@pytest.mark.parametrize("command", ["show", "table", "report", "sql", "spark"])
def test_errors_of_commands(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], command: str,
) -> None:  # fmt: skip
    """One line, without credentials."""
    monkeypatch.chdir(tmp_path)
    uri = bucket.uri("day/a.pcap").replace(bucket.name, "no-such-bucket")
    rest = {"sql": ["select * from requests"], "show": []}.get(command, ["--out", "out"])
    with pytest.raises(SystemExit) as ended:
        main([command, uri, *rest])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "s3://no-such-bucket/day/a.pcap: there is no such bucket" in said
    assert said.count("\n") == 1
    assert "testing" not in said
    assert list(tmp_path.iterdir()) == []
