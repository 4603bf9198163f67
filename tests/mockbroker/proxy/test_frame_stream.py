"""Frames that pass as they arrive: whole, in any chunks, with bad sizes behind them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import RemoteProtocolError
from kproto.framing import encode_frame
from mockbroker.proxy.frame_stream import Collect, Copy, FrameStream, Treatment, frame_end


class Sorted:
    """Relays, copies and collects frames by their first byte, and notes what it took."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.taken: list[bytes] = []
        self.stream = FrameStream(self.begin, self.out, max_size=1000)

    def begin(self, data: bytes, at: int) -> Treatment | None:
        if len(data) - at < 5:
            return at + 4 if data[at : at + 4] == b"\0\0\0\0" else None
        kind = data[at + 4] % 4
        if kind == 0:
            return frame_end(data, at)
        if kind == 1:
            return Copy(self.taken.append)
        return Collect(self.replace)

    def replace(self, parts: list[bytes]) -> None:
        frame = b"".join(parts)
        self.taken.append(frame)
        if frame[4] % 4 == 2:
            self.out.append(b"<replaced>")

    def passed(self) -> bytes:
        return b"".join(self.out)


def expected(payloads: list[bytes]) -> tuple[bytes, list[bytes]]:
    passed, taken = b"", []
    for payload in payloads:
        frame, kind = encode_frame(payload), payload[0] % 4 if payload else 0
        if kind:
            taken.append(frame)
        passed += frame if kind < 2 else b"<replaced>" if kind == 2 else b""
    return passed, taken


payloads = st.lists(st.binary(max_size=40), max_size=12)


@given(payloads, st.lists(st.integers(0, 500), max_size=30))
def test_the_result_does_not_depend_on_the_chunks(frames: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(encode_frame, frames))
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    sorted_out = Sorted()
    for start, end in itertools.pairwise(places):
        sorted_out.stream.receive(data[start:end])
    assert (sorted_out.passed(), sorted_out.taken) == expected(frames)
    assert not sorted_out.stream.within_frame
    assert sorted_out.stream.buffered == 0


@given(payloads)
def test_byte_by_byte(frames: list[bytes]) -> None:
    sorted_out = Sorted()
    for byte in b"".join(map(encode_frame, frames)):
        sorted_out.stream.receive(bytes([byte]))
    assert (sorted_out.passed(), sorted_out.taken) == expected(frames)


@pytest.mark.requirement("DP-PROXY-26")
def test_a_frame_passes_before_it_is_complete() -> None:
    sorted_out = Sorted()
    frame = encode_frame(b"\0" + b"x" * 500)
    sorted_out.stream.receive(frame[:300])
    assert sorted_out.passed() == frame[:300]
    assert sorted_out.stream.buffered == 0
    assert sorted_out.stream.within_frame
    sorted_out.stream.receive(frame[300:])
    assert sorted_out.passed() == frame


@pytest.mark.parametrize(
    ("size", "problem"),
    [(b"\xff\xff\xff\xff", "frame size -1 is negative"),
     (b"\0\0\x03\xe9", "frame size 1001 is more than the 1000 allowed")],
)  # fmt: skip
def test_frames_before_a_bad_size_pass(size: bytes, problem: str) -> None:
    sorted_out = Sorted()
    good = encode_frame(b"\0good")
    with pytest.raises(RemoteProtocolError, match=problem):
        sorted_out.stream.receive(good + encode_frame(b"\1copied") + size + b"more")
    assert sorted_out.passed() == good + encode_frame(b"\1copied")
    assert sorted_out.taken == [encode_frame(b"\1copied")]


def test_nothing_is_read_while_paused() -> None:
    sorted_out = Sorted()

    def begin(data: bytes, at: int) -> Treatment:
        return Collect(take)

    def take(parts: list[bytes]) -> None:
        sorted_out.taken += parts
        stream.paused = True

    stream = FrameStream(begin, sorted_out.out)
    frames = [encode_frame(bytes([n])) for n in range(3)]
    stream.receive(b"".join(frames))
    assert sorted_out.taken == frames[:1]
    assert stream.buffered == 2 * len(frames[0])
    stream.receive(b"")
    assert sorted_out.taken == frames[:1]
    for count in (2, 3):
        stream.paused = False
        stream.receive(b"")
        assert sorted_out.taken == frames[:count]
