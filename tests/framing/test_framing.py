"""FrameSplitter against a plain reading of the whole stream, over random chunkings."""

import struct
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import RemoteProtocolError
from kproto.framing import DEFAULT_MAX_SIZE, FrameSplitter, encode_frame

MAX_SIZE = 40

good_frames = st.lists(st.binary(max_size=MAX_SIZE).map(encode_frame), max_size=12)
bad_size = st.one_of(st.integers(-(2**31), -1), st.integers(MAX_SIZE + 1, 2**31 - 1))
tails = st.one_of(
    st.binary(max_size=3),
    st.integers(1, MAX_SIZE).flatmap(
        lambda size: st.binary(max_size=size - 1).map(lambda part: struct.pack(">i", size) + part)
    ),
    st.tuples(bad_size, st.binary(max_size=60)).map(lambda x: struct.pack(">i", x[0]) + x[1]),
)


def oracle(stream: bytes, *, keep_size: bool) -> tuple[list[bytes], bool, int]:
    """Frames, whether a bad size follows, bytes left: the obvious way, over the whole stream."""
    frames: list[bytes] = []
    at = 0
    while at + 4 <= len(stream):
        size = int.from_bytes(stream[at : at + 4], "big", signed=True)
        if not 0 <= size <= MAX_SIZE:
            return frames, True, 0
        if at + 4 + size > len(stream):
            break
        frames.append(stream[at if keep_size else at + 4 : at + 4 + size])
        at += 4 + size
    return frames, False, len(stream) - at


def chunked(data: st.DataObject, stream: bytes) -> list[bytes]:
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=20).map(sorted))
    edges = [0, *cuts, len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


@given(frames=good_frames, tail=tails, keep_size=st.booleans(), data=st.data())
def test_frames_do_not_depend_on_chunks_or_on_when_they_are_pulled(frames, tail, keep_size, data):
    stream = b"".join(frames) + tail
    splitter = FrameSplitter(MAX_SIZE, keep_size=keep_size)
    got: list[bytes] = []
    failed = False
    for chunk in chunked(data, stream):
        splitter.feed(chunk)
        try:
            for _ in range(data.draw(st.integers(0, 3))):
                if (frame := splitter.next_frame()) is not None:
                    got.append(frame)
        except RemoteProtocolError:
            failed = True
    try:
        got.extend(splitter.frames())
    except RemoteProtocolError:
        failed = True
    assert (got, failed, splitter.buffered) == oracle(stream, keep_size=keep_size)


@pytest.mark.parametrize("step", [1, 3, 1 << 20], ids=["byte by byte", "three bytes", "whole"])
def test_three_ways(step: int) -> None:
    """Whole, byte by byte, and with trailing data."""
    stream = encode_frame(b"abc") + encode_frame(b"") + encode_frame(b"d" * 500) + b"\0\0"
    splitter = FrameSplitter()
    got: list[bytes] = []
    for at in range(0, len(stream), step):
        splitter.feed(stream[at : at + step])
        got.extend(splitter.frames())
    assert got == [b"abc", b"", b"d" * 500]
    assert splitter.buffered == 2


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (-1, "frame size -1 is negative"),
        (DEFAULT_MAX_SIZE + 1, "frame size 104857601 is more than the 104857600 allowed"),
    ],
)
def test_bad_size_comes_after_the_good_frames_and_stays(size: int, text: str) -> None:
    splitter = FrameSplitter()
    splitter.feed(encode_frame(b"good") + struct.pack(">i", size) + encode_frame(b"never"))
    assert splitter.next_frame() == b"good"
    for _ in range(2):
        with pytest.raises(RemoteProtocolError) as caught:
            splitter.next_frame()
        assert str(caught.value) == text
    splitter.feed(b"x" * 1000)
    assert splitter.buffered == 0


def test_the_largest_allowed_size_is_not_refused() -> None:
    splitter = FrameSplitter()
    splitter.feed(struct.pack(">i", DEFAULT_MAX_SIZE))
    assert splitter.next_frame() is None


@pytest.mark.requirement("C-09")
def test_an_announced_size_allocates_nothing() -> None:
    splitter = FrameSplitter()
    tracemalloc.start()
    try:
        splitter.feed(struct.pack(">i", DEFAULT_MAX_SIZE) + b"x")
        assert splitter.next_frame() is None
        splitter.feed(b"y" * 1000)
        assert splitter.next_frame() is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024


def test_handed_out_bytes_are_not_kept() -> None:
    """A short tail behind a large frame must not keep that frame's memory alive."""
    tracemalloc.start()
    try:
        splitter = FrameSplitter()
        splitter.feed(encode_frame(b"x" * 1_000_000) + b"\0\0")
        assert len(splitter.next_frame() or b"") == 1_000_000
        assert splitter.next_frame() is None
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 64 * 1024


def test_work_grows_with_the_bytes_and_not_with_their_square(monkeypatch):
    """Counts joins: one large frame in small chunks, and many small frames in one chunk."""
    splitter = FrameSplitter()
    joins = 0
    slow = FrameSplitter._next_frame_slowly

    def counting(self: FrameSplitter) -> bytes | None:
        nonlocal joins
        before = self._data
        frame = slow(self)
        joins += self._data is not before
        return frame

    monkeypatch.setattr(FrameSplitter, "_next_frame_slowly", counting)
    large = encode_frame(b"x" * 100_000)
    for at in range(0, len(large), 10):
        splitter.feed(large[at : at + 10])
        frame = splitter.next_frame()
    assert frame is not None
    assert joins <= 3
    splitter.feed(encode_frame(b"y") * 10_000)
    assert len(list(splitter.frames())) == 10_000
    assert joins <= 4


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_taken_and_copied(kind: type) -> None:
    source = bytearray(encode_frame(b"abc"))
    splitter = FrameSplitter()
    splitter.feed(kind(source))
    source[:] = b"\xff" * len(source)
    assert splitter.next_frame() == b"abc"
