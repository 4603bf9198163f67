"""Rotating captures to tables, without Java: the rows are those of one process over all files,
whatever the rotation, the batches, and wherever a run is killed."""

from __future__ import annotations

import pickle
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kproto
from kproto.capture import Conversation
from kproto.capture.packets import ethernet_frame
from kproto.messages import MetadataRequest
from tests.support.full import either, quick
from tests.wiredump.sources.test_opening import journal as journal_of
from tests.wiredump.sources.test_opening import talk
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_lake import FakeLake
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.fake_streams import run_query
from tests.wiredump.spark.killed_driver import some_kills
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.pipeline import load
from tests.wiredump.spark.rotating import (
    EVERY,
    ROOT,
    Killed,
    cut_off,
    difference,
    follow,
    one_process,
    records,
    rotate,
    so_far,
    some_cuts,
    to_the_end,
)
from wiredump.rows.schema import TABLES
from wiredump.spark import KafkaCapture
from wiredump.spark.connections import Options
from wiredump.spark.rotation import Rotated, RotationError
from wiredump.spark.sinks import Layout
from wiredump.spark.state import StateError
from wiredump.spark.stream_folder import Record, StreamError, StreamFolder, Taken
from wiredump.storage import Location
from wiredump.tables.publishing import OutputError

__all__ = ["session"]

quiet = settings(
    deadline=None,
    max_examples=quick(25, 6),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
seeds = st.integers(0, 2**32)
LAYOUTS = (
    Layout(), Layout(form="delta"), Layout(partition_by=("date", "hour", "api", "records.topic")),
)  # fmt: skip


def fresh(tmp_path: Path) -> Path:
    root = tmp_path / "run"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    return root


@pytest.mark.slow
@quiet
@given(seeds, st.integers(1, 3))
def test_any_rotation_and_any_batches(
    tmp_path: Path, session: FakeSession, seed: int, partitions: int
) -> None:
    """Files turn up one by one or several at a time, and queries end in between; what is visible
    stays as it is."""
    rng, root = random.Random(seed), fresh(tmp_path)
    capture = made_up.capture(seed, connections=5, exchanges=6, kind="pcap")
    files = rotate(capture, some_cuts(rng, len(records(capture)[1])), root / "all")
    (root / "in").mkdir()
    there: list[Path] = []
    seen: dict[Path, int] = {}
    while len(there) < len(files):
        for path in files[len(there) : len(there) + rng.randint(1, 3)]:
            there.append(shutil.copy(path, root / "in" / path.name))
        limits = {"max_files": rng.choice((1, 2, None)), "max_bytes": rng.choice((20_000, None))}
        so_far(session, follow(root / "in", root, partitions=partitions, **limits))
        found = {path: path.stat().st_mtime_ns for path in (root / "out").glob("*/batch-*")}
        assert seen.items() <= found.items(), "rows that readers have seen changed"
        seen = found
    made = to_the_end(session, follow(root / "in", root, partitions=partitions))
    expected = one_process(there, root / "one")
    assert difference(expected, root / "out") == {}
    assert {name: len(rows) for name, rows in expected.items()} == made.rows
    assert (root / "out" / "_SUCCESS").exists()


@pytest.mark.slow
@quiet
@given(seeds, st.integers(1, 150), st.integers(1, 60), st.sampled_from(LAYOUTS))
def test_killed_anywhere(
    tmp_path: Path, session: FakeSession, seed: int, first: int, second: int, layout: Layout
) -> None:
    """At any file that is moved, made or removed, or at the change of a table, and once more while
    that is put right."""
    root = fresh(tmp_path)
    lake = FakeLake(root / "lake") if layout.form != "parquet" else None
    with pytest.MonkeyPatch.context() as patch:
        if lake is not None:
            patch.setattr("wiredump.spark.outputs.sink_of", lake.sink)
        place = Location(str(root / "stream"))
        cut_off(session, seed, (first, second), root, place, lake=lake, layout=layout)


@pytest.mark.slow
def test_kill_9_at_each_stage(tmp_path: Path, session: FakeSession, rng: random.Random) -> None:
    """Drivers without Java that die one after the other (``test_streams`` has those of Spark)."""
    kills = some_kills(rng, either(20, 2), 0.2)
    capture = made_up.capture(23, connections=6, exchanges=2 * len(kills) + 4, kind="pcap")
    count = len(records(capture)[1])
    files = rotate(capture, range(5, count, count // (3 * len(kills) + 1)), tmp_path / "in")
    program = [sys.executable, "-m", "tests.wiredump.spark.killed_stream"]
    store = StreamFolder(str(tmp_path / "checkpoint" / "wiredump"))
    for number, kill in enumerate(kills):
        batches = store.batches
        done = subprocess.run(
            [*program, *kill, "--", str(tmp_path / "in"), str(tmp_path), *EVERY],
            cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == -signal.SIGKILL, (kill, done.stderr[-3000:])
        print(f"kill {number + 1}: {kill.stage}, call {kill.call}: ", end="")
        print(f"{store.batches - batches} batches, made: {store.made is not None}", flush=True)
    made = to_the_end(session, follow(tmp_path / "in", tmp_path))
    expected = one_process(files, tmp_path / "one")
    assert difference(expected, tmp_path / "out") == {}
    assert made.rows == {name: len(rows) for name, rows in expected.items()}


def test_an_end_is_the_end(tmp_path: Path, session: FakeSession) -> None:
    """Once more it says the same; with more files it is refused, and a new stream goes on."""
    capture = made_up.capture(3, connections=6, exchanges=6, kind="pcap")
    files = rotate(capture, [40, 80], tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    for path in files[:2]:
        shutil.copy(path, place)
    made = to_the_end(session, follow(place, tmp_path))
    assert to_the_end(session, follow(place, tmp_path)) == made
    shutil.copy(files[2], place)
    with pytest.raises(
        StreamError, match=r"r\.pcap2 comes after the stream has ended with batch 0: "
    ):
        so_far(session, follow(place, tmp_path))
    with pytest.raises(StreamError, match="has ended"):
        to_the_end(session, follow(place, tmp_path))
    (tmp_path / "next").mkdir()
    after = str(place / "r.pcap1")
    to_the_end(session, follow(place, tmp_path / "next", start_after=after))
    expected = one_process(files[2:], tmp_path / "one")
    found = difference(expected, tmp_path / "next" / "out")
    assert set(found) <= {"lineage"}, "of which the path is another"
    with pytest.raises(StreamError, match=r"there is no capture .*/none in .*/in"):
        follow(place, tmp_path / "third", start_after=str(place / "none")).begin(session)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"max_files": 1}, {"max_bytes": 2_000}, {}])
def test_what_other_connections_said(
    tmp_path: Path, session: FakeSession, limits: dict[str, int]
) -> None:
    """A file a packet: names that come after the rows that want them, sessions and reassignments
    that go through all of them. What depends on all batches can be had at any time."""
    capture = knowing()
    files = rotate(capture, list(range(1, len(records(capture)[1]))), tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    for number, path in enumerate(files, 1):
        shutil.copy(path, place)
        if number % 9 == 0:
            made = so_far(session, follow(place, tmp_path, **limits))
            lineage = load(tmp_path / "out", ("lineage",))["lineage"]
            assert len(lineage) == number - 1 == made.rows["lineage"]
    assert load(tmp_path / "out", ("topics",))["topics"]
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    to_the_end(session, follow(place, tmp_path, **limits))
    expected = one_process([place / each.name for each in files], tmp_path / "one")
    assert difference(expected, tmp_path / "out") == {}
    assert any("'foo'" in row for row in expected["batches"])
    assert any("'topic': None" in row for row in expected["batches"])
    assert expected["fetches"]
    assert expected["reassignments"]


def test_a_file_counts_once_there_is_a_newer_one(tmp_path: Path, session: FakeSession) -> None:
    """Files that are no captures are named, and not taken."""
    capture = made_up.capture(3, kind="pcap")
    only, second = rotate(capture, [len(records(capture)[1]) - 5], tmp_path / "in")
    second.rename(tmp_path / second.name)
    (tmp_path / "in" / "README.txt").write_text("The captures of broker 1.\n")
    assert run_query(session, follow(tmp_path / "in", tmp_path), available_now=True) == 0
    (tmp_path / second.name).rename(second)
    assert run_query(session, follow(tmp_path / "in", tmp_path), available_now=True) == 1
    assert list((tmp_path / "out" / "frames").glob("batch-000000-*"))
    record = StreamFolder(str(tmp_path / "checkpoint" / "wiredump")).record(0)
    assert record is not None
    assert [each.file.path for each in record.files] == [str(only)]
    assert record.summary["others"] == [str(tmp_path / "in" / "README.txt")]


def test_what_no_longer_is_as_it_was(tmp_path: Path, session: FakeSession) -> None:
    """A closed file that grows, one that comes too late, one that goes before it was read."""
    capture = made_up.capture(9, connections=5, exchanges=5, kind="pcap", back=0.0)
    files = rotate(capture, [30, 60, 90], tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    for path in files[1:3]:
        shutil.copy(path, place)
    so_far(session, follow(place, tmp_path))
    with (place / "r.pcap1").open("ab") as file:
        file.write(bytes(3))
    with pytest.raises(RotationError, match="changed although there is a newer file"):
        so_far(session, follow(place, tmp_path))
    shutil.copy(files[1], place)
    shutil.copy(files[0], place)
    with pytest.raises(RotationError, match="begins before"):
        so_far(session, follow(place, tmp_path))
    (place / "r.pcap").unlink()
    shutil.copy(files[3], place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wiredump.spark.microbatch.MicroBatch.run", _killed)
        with pytest.raises(Killed):
            so_far(session, follow(place, tmp_path))
    (place / "r.pcap2").rename(tmp_path / "gone")
    with pytest.raises(RotationError, match=r"r\.pcap2 was removed"):
        so_far(session, follow(place, tmp_path))
    (tmp_path / "gone").rename(place / "r.pcap2")
    to_the_end(session, follow(place, tmp_path))
    expected = one_process([place / path.name for path in files[1:]], tmp_path / "one")
    assert difference(expected, tmp_path / "out") == {}


def _killed(*about: object) -> None:
    raise Killed


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_bad_files_are_left_out(tmp_path: Path, session: FakeSession, policy: str) -> None:
    """A late file, one that changed, and one that is gone when its batch begins: the stream goes
    on, says so once, and moves them away if it is to."""
    capture = made_up.capture(9, connections=5, exchanges=5, kind="pcap", back=0.0)
    files = rotate(capture, [30, 60, 90], tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    for path in files[1:3]:
        shutil.copy(path, place)
    about = {"on_bad_file": policy}
    so_far(session, follow(place, tmp_path, **about))
    shutil.copy(files[0], place)
    shutil.copy(files[3], place)
    with (place / "r.pcap1").open("ab") as file:
        file.write(bytes(3))
    for _ in range(2):
        so_far(session, follow(place, tmp_path, **about))
    store = StreamFolder(str(tmp_path / "checkpoint" / "wiredump"))
    assert store.batches == 2
    reasons = [bad.reason for noted in store.noted() for bad in noted.bad]
    assert len(reasons) == 2
    assert "changed although there is a newer file" in str(reasons)
    assert "begins before" in str(reasons)
    moved = {path.name.partition("-")[2] for path in (tmp_path / "out").glob("_quarantine/*")}
    wanted = {"r.pcap", "r.pcap.json", "r.pcap1", "r.pcap1.json"} if policy == "quarantine" else {}
    assert moved == set(wanted)
    assert (place / "r.pcap").exists() == (policy == "skip")
    to_the_end(session, follow(place, tmp_path, **about))
    shutil.copy(files[1], place)
    expected = one_process([place / path.name for path in files[1:]], tmp_path / "one")
    assert difference(expected, tmp_path / "out") == {}


def test_a_ring_uses_its_names_again(tmp_path: Path, session: FakeSession) -> None:
    capture = made_up.capture(12, connections=5, exchanges=8, kind="pcap", back=0.0)
    files = rotate(capture, list(range(20, 200, 20)), tmp_path / "all")
    assert len(files) > 5
    ring = tmp_path / "ring"
    ring.mkdir()
    for number, path in enumerate(files):
        shutil.copy(path, ring / f"{number % 3}.pcap")
        if number % 2:
            run_query(session, follow(ring, tmp_path), available_now=True)
    to_the_end(session, follow(ring, tmp_path))
    expected = one_process(files, tmp_path / "one")
    found = difference(expected, tmp_path / "out")
    assert set(found) <= {"lineage"}, "of which the paths are others"


def test_journals_are_read(tmp_path: Path, session: FakeSession) -> None:
    place = tmp_path / "in"
    files = rotate(made_up.capture(3, kind="pcap"), [40], place)
    journal = place / "s.jsonl"
    journal.write_text(journal_of(talk(3)))
    made = to_the_end(session, follow(place, tmp_path))
    expected = one_process([*files, journal], tmp_path / "one")
    assert difference(expected, tmp_path / "out") == {}
    assert made.rows["requests"] == len(expected["requests"])


@pytest.mark.slow
def test_clients_that_vanish_are_forgotten(tmp_path: Path, session: FakeSession) -> None:
    """Days of clients that ask and are never seen again: the state stays as it is on the
    second day, and the requests without a response are rows as soon as ``idle_ns`` has passed."""
    place = tmp_path / "in"
    place.mkdir()
    stream = follow(place, tmp_path, TABLES_OF_A_DAY, idle_ns=3_600 * SECOND)
    store = StreamFolder(stream.folder)
    sizes, days = [], either(30, 5)
    for day in range(days):
        (place / f"{day:02}.pcap").write_bytes(vanishing(day, clients=20))
        if day:
            so_far(session, stream)
            record = store.last()
            assert record is not None
            sizes.append(record.summary["state"])
            requests = load(tmp_path / "out", ("requests",))["requests"]
            assert len(requests) == 20 * (day - 1)
            assert all("'latency_ns': None" in row for row in requests)
    assert {each["entries"] for each in sizes} == {20}
    assert max(each["bytes"] for each in sizes) < 1.1 * sizes[0]["bytes"]
    made = to_the_end(session, stream)
    assert made.rows["connections"] == made.rows["requests"] == 20 * days
    expected = one_process(sorted(place.iterdir()), tmp_path / "one", TABLES_OF_A_DAY)
    assert difference(expected, tmp_path / "out") == {}


SECOND = 1_000_000_000
TABLES_OF_A_DAY = ("connections", "requests", "frames", "account")


def vanishing(day: int, clients: int) -> bytes:
    """The capture of a day: each client opens a connection and sends one request."""
    request = kproto.encode_request(
        MetadataRequest(topics=None), api_version=1, correlation_id=1, client_id="c"
    )
    records = []
    for client in range(clients):
        ends = (f"10.{day}.0.{client + 1}", 40_000), ("10.200.0.1", 9092)
        talk = Conversation(*ends, segment_size=1448, client_isn=1)
        packets = [*talk.open(), *talk.send(request)]
        at = made_up.START_NS + (day * 86_400 + client) * SECOND
        records += [(at + each * 1000, packet) for each, packet in enumerate(packets)]
    return made_up.pcap(
        [(at, framed, len(framed)) for at, packet in records for framed in [ethernet_frame(packet)]]
    )


def test_folders_that_are_not_the_streams(tmp_path: Path, session: FakeSession) -> None:
    rotate(made_up.capture(3, kind="pcap"), [20], tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs").touch()
    with pytest.raises(OutputError, match="is not empty"):
        to_the_end(session, follow(tmp_path / "in", tmp_path))
    (tmp_path / "out" / "theirs").unlink()
    so_far(session, follow(tmp_path / "in", tmp_path))
    with pytest.raises(StreamError, match="started with partitions 2, but this run has 3"):
        to_the_end(session, follow(tmp_path / "in", tmp_path, partitions=3))
    for path in (tmp_path / "checkpoint" / "wiredump" / "state" / "000000").iterdir():
        path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(StateError, match="in the middle of an entry"):
        to_the_end(session, follow(tmp_path / "in", tmp_path))


def test_a_stream_to_a_lake(
    tmp_path: Path, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are published again after a kill, even if a capture has gone meanwhile; another
    stream must have another run, and its batches are its own."""
    capture = made_up.capture(3, connections=4, exchanges=6, kind="pcap")
    files = rotate(capture, [20, 40], tmp_path / "in")
    expected = one_process(files, tmp_path / "one")
    lake = FakeLake(tmp_path / "lake")
    monkeypatch.setattr("wiredump.spark.outputs.sink_of", lake.sink)
    about = {"layout": Layout(form="delta"), "on_bad_file": "skip"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamFolder, "commit", _killed)
        with pytest.raises(Killed):
            to_the_end(session, follow(tmp_path / "in", tmp_path, **about))
    for path in files:
        path.rename(tmp_path / path.name)
    with pytest.raises(StreamError, match="batch 0 is not complete: run the query"):
        follow(tmp_path / "in", tmp_path, **about).complete(session, ending=True)
    to_the_end(session, follow(tmp_path / "in", tmp_path, **about))
    assert difference(expected, lake.copied(tmp_path / "out")) == {}
    for path in files:
        (tmp_path / path.name).rename(path)
    with pytest.raises(OutputError, match="already have the run"):
        to_the_end(session, follow(tmp_path / "in", tmp_path / "other", **about))
    options = Options(out="x", paths={}, tables=EVERY, run="second")
    again = follow(tmp_path / "in", tmp_path / "other", options=options, **about)
    made = to_the_end(session, again)
    assert made.rows == {name: len(rows) for name, rows in expected.items()}
    runs = {run for run, *_ in lake.rows("frames")}
    assert runs == {"", "second"}


@pytest.mark.parametrize("layout", LAYOUTS[::2])
def test_batches_are_read_as_a_stream(tmp_path: Path, session: FakeSession, layout: Layout) -> None:
    """With the columns that are names of folders, and the run."""
    files = rotate(knowing(), [10, 20, 30], tmp_path / "in")
    options = Options(out=str(tmp_path / "out"), paths={}, tables=EVERY, run="mine")
    stream = follow(
        tmp_path / "in", tmp_path, options=options, layout=layout, max_files=1, closed=True
    )
    so_far(session, stream)
    expected = one_process(files, tmp_path / "one")
    for table in ("requests", "batches", "frames"):
        source = KafkaCapture({"path": stream.checkpoint, "table": table}).streamReader(None)
        parts = source.partitions(source.initialOffset(), source.latestOffset())
        rows: list[dict[str, Any]] = [
            row
            for part in pickle.loads(pickle.dumps(parts))
            for batch in source.read(part)
            for row in pa.Table.from_batches([batch]).to_pylist()  # type: ignore[list-item]
        ]
        names = [each.name for each in TABLES[table].columns]
        found = [repr({name: row[name] for name in names}) for row in rows]
        assert rows
        assert set(found) <= set(expected[table])
        assert {row["run"] for row in rows} == {"mine"}


def test_a_state_folder_of_another_stream(tmp_path: Path, session: FakeSession) -> None:
    rotate(made_up.capture(3, kind="pcap"), [20, 40], tmp_path / "in")
    stream = follow(tmp_path / "in", tmp_path, max_files=1)
    run_query(session, stream, available_now=True)
    (tmp_path / "checkpoint" / "wiredump" / "batches" / "000001.json").unlink()
    with pytest.raises(StreamError, match=r"lacks state.*: restore the checkpoint and its state"):
        to_the_end(session, stream)


def test_all_files_were_taken_and_are_gone(tmp_path: Path, session: FakeSession) -> None:
    """What waits goes on, and the end has it: half a datagram, open connections."""
    capture = made_up.capture(7, connections=8, exchanges=8, kind="pcap")
    files = rotate(capture, [60, 100], tmp_path / "in")
    so_far(session, follow(tmp_path / "in", tmp_path))
    expected = one_process(files[:2], tmp_path / "one")
    assert any("is incomplete: the captures ended" in row for row in expected["anomalies"])
    for path in files:
        path.unlink()
    to_the_end(session, follow(tmp_path / "in", tmp_path))
    assert difference(expected, tmp_path / "out") == {}


def test_records_are_compacted(tmp_path: Path) -> None:
    """Whatever was killed in between: what the records say of files stays, once each."""
    store = StreamFolder(str(tmp_path))
    patch = pytest.MonkeyPatch()
    with patch.context() as few:
        few.setattr("wiredump.spark.stream_folder._MERGED", 3)
        for batch in range(40):
            file = Rotated(f"/in/{batch}", 1, 1, batch)
            record = Record(batch=batch, files=[Taken(batch, file)], count=batch + 1, last=file)
            store.commit(record)
            if batch % 5:  # else it was killed
                store.compact(record)
            assert [each.batch for each in store.noted()] == list(range(batch + 1))
            assert store.batches == batch + 1
            assert store.record(batch) == record
        assert len(list((tmp_path / "batches").iterdir())) < 6
        assert len(list((tmp_path / "files").iterdir())) < 8
