"""Which file follows which, by names and times; and offsets of a stream of files."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from tests.wiredump.spark import made_up
from tests.wiredump.spark.rotating import records, rotate
from wiredump.spark.rotation import Rotated, Rotation, RotationError, complete, in_order
from wiredump.spark.state import StateError, dump, load
from wiredump.spark.stream_source import CaptureStream, Offset

SECOND = 1_000_000_000
T0 = made_up.START_NS


def files(*named: tuple[str, float | None]) -> list[Rotated]:
    """Names, and when their first packets came, in seconds."""
    return [
        Rotated(f"/c/{name}", 100, T0, None if at is None else T0 + int(at * SECOND))
        for name, at in named
    ]


def names(ordered: list[Rotated]) -> list[str]:
    return [each.path.removeprefix("/c/") for each in ordered]


@pytest.mark.parametrize(
    "ordered",
    [
        [("a.pcap", 0), ("a.pcap1", 10), ("a.pcap2", 20), ("a.pcap10", 30)],  # tcpdump -C
        [("a-20260101-235900.pcap", 0), ("a-20260102-000000.pcap", 60)],  # tcpdump -G
        [("a_00001_2026.pcapng", 0), ("a_00002_2026.pcapng", 5)],  # dumpcap -b
        [("a3", 0), ("a4", 10), ("a0", 20), ("a1", 30), ("a2", 40)],  # a ring, in its second round
        [("a1", 0.5), ("a2", 0.4), ("a3", 1.4), ("a4", 0.9)],  # of two queues: not quite by time
        [("Jan", 0), ("Feb", 40), ("Mar", 80), ("Apr", 120)],  # names that say nothing
        [("a1", 0), ("a2", None), ("a3", 10)],  # one in which nothing was heard
    ],
)
@given(st.randoms(use_true_random=False))
def test_the_order_they_were_written_in(ordered, rng) -> None:
    made = files(*ordered)
    shuffled = list(made)
    rng.shuffle(shuffled)
    assert names(in_order(shuffled, None)) == names(made)
    assert names(in_order(shuffled[:0] + made[1:], made[0])) == names(made[1:])


def test_what_is_complete() -> None:
    made = files(("a1", 0), ("a2", 10), ("a3", 20))
    assert names(complete(made)) == ["a1", "a2"]
    assert complete(made[:1]) == complete([]) == []
    empty = Rotated("/c/a0", 24, T0 + 99, None)
    assert complete([empty, *made]) == [], "it may be the one that is being written"


def test_what_is_no_capture(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("broker{}\n" * 9)
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "a.pcap").write_bytes(made_up.capture(1, kind="pcap"))
    assert [each.path for each in Rotation(str(tmp_path / "*.pcap")).files()] == [
        str(tmp_path / "a.pcap")
    ]
    (tmp_path / "notes.txt").write_text('{"sequence": 1}\n')
    with pytest.raises(RotationError, match=r"notes\.txt is not a capture"):
        Rotation(str(tmp_path)).files()
    with pytest.raises(RotationError, match="does not exist"):
        Rotation(str(tmp_path / "no" / "captures")).files()


def test_offsets_are_files(tmp_path: Path) -> None:
    """Of a ring, whose old files are written over; asked again, the answer is the same, or an
    error."""
    capture = made_up.capture(12, connections=5, exchanges=8, kind="pcap", back=0.0)
    made = rotate(capture, list(range(20, len(records(capture)[1]), 20)), tmp_path / "all")
    ring = tmp_path / "ring"
    ring.mkdir()
    at, taken = Offset(), []
    for number, path in enumerate(made):
        shutil.copy(path, ring / f"{number % 4}.pcap")
        stream = CaptureStream(str(ring))  # a process of its own each time
        latest = stream.latest(at, None)
        between = stream.between(at, latest)
        assert between == CaptureStream(str(ring)).between(at, latest)
        taken += [(which, Path(path).read_bytes()) for which, path in between]
        at, before = latest, at
    assert taken == [(number, path.read_bytes()) for number, path in enumerate(made[:-1])]
    last = CaptureStream(str(ring), last_file=True)
    assert last.latest(at, None).files == len(made)
    assert last.latest(at, 0) == at
    last.stop_at(at)
    shutil.copy(made[0], ring / "9.pcap")
    assert last.latest(at, None).files == len(made), "what comes later is not this run's"
    os.unlink(at.path)
    with pytest.raises(RotationError, match="no longer exist"):
        CaptureStream(str(ring)).between(before, at)


class _Theirs:
    def __reduce__(self):
        return os.system, ("true",)


def test_a_state_makes_nothing_but_what_is_ours() -> None:
    codec = kproto.dialect("auto")
    assert load(dump([codec, b"x"], codec), codec) == [codec, b"x"]
    named = load(dump(kproto.dialect("kafka"), codec), codec)
    assert named is kproto.dialect("kafka")
    with pytest.raises(StateError, match="which is not allowed"):
        load(pickle.dumps(_Theirs()), codec)
    with pytest.raises(StateError, match="which is not allowed"):
        load(b"\x80\x04\x8c\x12wiredump.spark.job\x8c\x0dshutil.rmtree\x93.", codec)
    with pytest.raises(StateError, match="cannot read"):
        load(b"\x80\x05", codec)
