"""Rotating captures to tables, without Java: the rows are those of one process over all files,
whatever the rotation, the batches, and wherever a run is killed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.full import quick
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.rotating import (
    Killed,
    cut_off,
    difference,
    follow,
    never,
    one_process,
    records,
    rotate,
    some_cuts,
)
from wiredump.spark.checkpoint import CheckpointError
from wiredump.spark.rotation import RotationError
from wiredump.spark.state import StateError
from wiredump.storage import Location
from wiredump.tables.publishing import OutputError

__all__ = ["session"]

quiet = settings(
    deadline=None,
    max_examples=quick(25, 6),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
seeds = st.integers(0, 2**32)


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
    """Files turn up one by one or several at a time, some runs end in between, and each end is that
    of all that is there."""
    rng, root = random.Random(seed), fresh(tmp_path)
    capture = made_up.capture(seed, connections=5, exchanges=6, kind="pcap")
    files = rotate(capture, some_cuts(rng, len(records(capture)[1])), root / "all")
    (root / "in").mkdir()
    there: list[Path] = []
    while len(there) < len(files):
        for path in files[len(there) : len(there) + rng.randint(1, 3)]:
            there.append(shutil.copy(path, root / "in" / path.name))
        ends = rng.random() < 0.4 or len(there) == len(files)
        stream = follow(
            root / "in", root, partitions=partitions, batch_bytes=rng.choice((1, 20_000, 1 << 30))
        )
        made = stream.run(session, available_now=ends, wait=never)
        if ends:
            expected = one_process(there, root / "one")
            assert difference(expected, root / "out") == {}
            assert {name: len(rows) for name, rows in expected.items()} == made.rows
    assert (root / "out" / "_SUCCESS").exists()


@pytest.mark.slow
@quiet
@given(seeds, st.integers(1, 120), st.integers(1, 60))
def test_killed_anywhere(
    tmp_path: Path, session: FakeSession, seed: int, first: int, second: int
) -> None:
    """At any file that is moved, made or removed, and once more while that is put right."""
    root = fresh(tmp_path)
    cut_off(session, seed, (first, second), root, Location(str(root / "stream")))


@pytest.mark.slow
def test_a_stream_that_goes_on_takes_its_end_back(tmp_path: Path, session: FakeSession) -> None:
    capture = made_up.capture(3, connections=6, exchanges=6, kind="pcap")
    files = rotate(capture, [40, 80], tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    for number, path in enumerate(files, 1):
        shutil.copy(path, place)
        follow(place, tmp_path).run(session, available_now=True, wait=never)
        expected = one_process(files[:number], tmp_path / "one")
        expected["lineage"] = [row.replace("/all/", "/in/") for row in expected["lineage"]]
        assert difference(expected, tmp_path / "out") == {}
    made = follow(place, tmp_path, say=pytest.fail).run(session, available_now=True, wait=never)
    assert made.rows["frames"] == len(expected["frames"]), "an end that stands is not made again"


@pytest.mark.slow
@pytest.mark.parametrize("batch_bytes", [1, 2_000, 1 << 30])
def test_what_other_connections_said(
    tmp_path: Path, session: FakeSession, batch_bytes: int
) -> None:
    """A file a packet: names that come after the rows that want them, sessions and reassignments
    that go through all of them; and each end is that of what is there."""
    capture = knowing()
    files = rotate(capture, list(range(1, len(records(capture)[1]))), tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    for number, path in enumerate(files, 1):
        shutil.copy(path, place)
        if number % 9 == 0 or number == len(files):
            stream = follow(place, tmp_path, batch_bytes=batch_bytes)
            stream.run(session, available_now=True, wait=never)
            there = [place / each.name for each in files[:number]]
            expected = one_process(there, tmp_path / "one")
            assert difference(expected, tmp_path / "out") == {}
    assert any("'foo'" in row for row in expected["batches"])
    assert any("'topic': None" in row for row in expected["batches"])
    assert expected["fetches"]
    assert expected["reassignments"]


def test_a_file_counts_once_there_is_a_newer_one(tmp_path: Path, session: FakeSession) -> None:
    capture = made_up.capture(3, kind="pcap")
    (only,) = rotate(capture, [], tmp_path / "in")
    follow(tmp_path / "in", tmp_path).run(session, available_now=False, wait=never)
    assert not list((tmp_path / "out" / "frames").glob("batch-*"))
    shutil.copy(only, tmp_path / "in" / "r.pcap1")
    follow(tmp_path / "in", tmp_path).run(session, available_now=False, wait=never)
    assert list((tmp_path / "out" / "frames").glob("batch-000001-*"))


def test_what_no_longer_is_as_it_was(tmp_path: Path, session: FakeSession) -> None:
    """A closed file that grows, one that comes too late, one that goes before it was read."""
    capture = made_up.capture(9, connections=5, exchanges=5, kind="pcap", back=0.0)
    files = rotate(capture, [30, 60, 90], tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    for path in files[1:3]:
        shutil.copy(path, place)
    run = follow(place, tmp_path)
    run.run(session, available_now=False, wait=never)
    with (place / "r.pcap1").open("ab") as file:
        file.write(bytes(3))
    with pytest.raises(RotationError, match="changed although there is a newer file"):
        run.run(session, available_now=True, wait=never)
    shutil.copy(files[1], place)
    shutil.copy(files[0], place)
    with pytest.raises(RotationError, match="begins before"):
        run.run(session, available_now=True, wait=never)
    (place / "r.pcap").unlink()
    shutil.copy(files[3], place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wiredump.spark.microbatch.MicroBatch.run", _killed)
        with pytest.raises(Killed):
            run.run(session, available_now=True, wait=never)
    (place / "r.pcap2").rename(tmp_path / "gone")
    with pytest.raises(RotationError, match=r"r\.pcap2 was removed"):
        run.run(session, available_now=True, wait=never)
    (tmp_path / "gone").rename(place / "r.pcap2")
    run.run(session, available_now=True, wait=never)
    expected = one_process([place / path.name for path in files[1:]], tmp_path / "one")
    assert difference(expected, tmp_path / "out") == {}


def _killed(*about: object) -> None:
    raise Killed


def test_a_ring_uses_its_names_again(tmp_path: Path, session: FakeSession) -> None:
    capture = made_up.capture(12, connections=5, exchanges=8, kind="pcap", back=0.0)
    files = rotate(capture, list(range(20, 200, 20)), tmp_path / "all")
    assert len(files) > 5
    ring = tmp_path / "ring"
    ring.mkdir()
    for number, path in enumerate(files):
        shutil.copy(path, ring / f"{number % 3}.pcap")
        if number % 2:
            follow(ring, tmp_path).run(session, available_now=False, wait=never)
    follow(ring, tmp_path).run(session, available_now=True, wait=never)
    expected = one_process(files, tmp_path / "one")
    found = difference(expected, tmp_path / "out")
    assert set(found) <= {"lineage"}, "of which the paths are others"


def test_folders_that_are_not_the_streams(tmp_path: Path, session: FakeSession) -> None:
    rotate(made_up.capture(3, kind="pcap"), [20], tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs").touch()
    with pytest.raises(OutputError, match="is not empty"):
        follow(tmp_path / "in", tmp_path).run(session, available_now=True, wait=never)
    (tmp_path / "out" / "theirs").unlink()
    follow(tmp_path / "in", tmp_path).run(session, available_now=False, wait=never)
    with pytest.raises(CheckpointError, match="started with partitions 2, but this run has 3"):
        follow(tmp_path / "in", tmp_path, partitions=3).run(session, available_now=True, wait=never)
    for path in (tmp_path / "checkpoint" / "state" / "000001").iterdir():
        path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(StateError, match="in the middle of an entry"):
        follow(tmp_path / "in", tmp_path).run(session, available_now=True, wait=never)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "checkpoint").mkdir()
    (tmp_path / "other" / "checkpoint" / "theirs").touch()
    with pytest.raises(CheckpointError, match="neither a checkpoint nor empty"):
        follow(tmp_path / "in", tmp_path / "other").run(session, available_now=True, wait=never)


def test_all_files_were_taken_and_are_gone(tmp_path: Path, session: FakeSession) -> None:
    """What waits goes on, and the end has it: half a datagram, open connections."""
    capture = made_up.capture(7, connections=8, exchanges=8, kind="pcap")
    files = rotate(capture, [60, 100], tmp_path / "in")
    follow(tmp_path / "in", tmp_path).run(session, available_now=False, wait=never)
    expected = one_process(files[:2], tmp_path / "one")
    assert any("is incomplete: the captures ended" in row for row in expected["anomalies"])
    for path in files:
        path.unlink()
    follow(tmp_path / "in", tmp_path).run(session, available_now=True, wait=never)
    assert difference(expected, tmp_path / "out") == {}
