"""Which file follows which, by names and times; and offsets of a stream of files."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from tests.wiredump.spark import made_up
from wiredump.spark.rotation import Rotated, Rotation, RotationError, complete, in_order
from wiredump.spark.state import StateError, dump, load

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
    rotation = Rotation(str(tmp_path))
    assert [each.path for each in rotation.files()] == [str(tmp_path / "a.pcap")]
    assert rotation.others == [str(tmp_path / "notes.txt")]
    (tmp_path / "notes.txt").write_text('{"sequence": 1}\n')
    assert [each.kind for each in sorted(rotation.files(), key=lambda each: each.path)] == [
        "capture", "journal",
    ]  # fmt: skip
    assert rotation.others == []
    with pytest.raises(RotationError, match="does not exist"):
        Rotation(str(tmp_path / "no" / "captures")).files()


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
