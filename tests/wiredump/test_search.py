"""Where frames are believed to begin behind a gap, and what it costs to look."""

from __future__ import annotations

import random
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.framing import encode_frame
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.support.full import either, quick
from tests.wiredump.talk import KAFKA, Piece, listen
from wiredump import native
from wiredump.frame_boundaries import Expected, Responses, every_request
from wiredump.model import Anomaly, Exchange, Item
from wiredump.search import JUDGED_AT_LEAST, JUDGED_PER_BYTE, Candidate, Search


def request(body: Any, version: int, number: int) -> bytes:
    return KAFKA.encode_request(body, api_version=version, correlation_id=number, client_id="c")


def response(body: Any, version: int, number: int) -> bytes:
    return KAFKA.encode_response(body, api_version=version, correlation_id=number)


def beat(number: int) -> bytes:
    return request(HeartbeatRequest(group_id="g", member_id="m"), 0, number)


def beaten(number: int) -> bytes:
    return response(HeartbeatResponse(), 0, number)


def told(items: list[Item]) -> list[tuple[int, int | None, int | None]]:
    """Correlation ids, and where request and response begin."""
    return [
        (
            item.correlation_id,
            item.request.offset if item.request else None,
            item.response.offset if item.response else None,
        )
        for item in items
        if isinstance(item, Exchange)
    ]


def kinds(items: list[Item]) -> list[tuple[str, str | None, int]]:
    return [(item.kind, item.direction, item.size) for item in items if isinstance(item, Anomaly)]


def test_a_batch_header_is_no_response() -> None:
    """The lower half of a base offset, and the batch's length, are a size and a correlation id;
    what follows decodes as a Fetch response without topics. What follows that is no frame."""
    fake = pack(">iiihii", 18, 118, 0, 0x26B, 0x25186600, 0)
    assert KAFKA.decode_response(fake, api_key=1, api_version=7)[1] == FetchResponse(
        error_code=0x26B, session_id=0x25186600
    )
    ask = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[])
    pieces = [Piece(True, beat(1)), Piece(False, beaten(1))]
    pieces += [Piece(True, request(ask, 7, 118)), Piece(True, beat(119))]
    pieces += [Piece(False, b"", 500), Piece(False, bytes(4) + fake + b"\0\0\0\1\xa2" * 4)]
    pieces += [Piece(False, beaten(119))]
    answered = len(beaten(1)) + 500 + 4 + 22 + 20
    assert (119, len(beat(1)) + len(request(ask, 7, 118)), answered) in told(listen(pieces))
    assert ("unframed", "response", 46) in kinds(listen(pieces))


@pytest.mark.parametrize("size", range(8))
def test_a_size_below_a_header_is_none(size: int) -> None:
    """In step: what has it is passed over, and the next frame found."""
    odd = encode_frame(b"\1" * size)
    answer = Piece(False, beaten(1))
    items = listen([Piece(True, beat(1)), answer, Piece(True, odd), Piece(True, beat(2))])
    assert ("unframed", "request", len(odd)) in kinds(items)
    assert [number for number, *_ in told(items)] == [1, 2]
    if size < 4:
        pieces = [Piece(True, beat(1)), Piece(False, odd), answer, Piece(True, beat(2))]
        items = listen([*pieces, Piece(False, beaten(2))])
        assert kinds(items) == [("unframed", "response", len(odd))]
        assert [response is not None for *_, response in told(items)] == [True, True]


@pytest.mark.parametrize("size", range(9))
def test_tokens_have_any_size(size: int) -> None:
    """Those without a header, behind a SaslHandshake v0 (KIP-43)."""
    pieces = [
        Piece(True, request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1)),
        Piece(False, response(SaslHandshakeResponse(), 0, 1)),
        Piece(True, encode_frame(b"\xff" * size)),
        Piece(False, encode_frame(b"\xff" * (8 - size))),
        Piece(True, beat(2)),
        Piece(False, beaten(2)),
    ]
    items = listen(pieces)
    assert not kinds(items)
    assert [item.request is not None and item.request.sasl for item in exchanges(items)] == [
        False, True, False,
    ]  # fmt: skip


def exchanges(items: list[Item]) -> list[Exchange]:
    return [item for item in items if isinstance(item, Exchange)]


@given(st.integers(1, 5), st.integers(0, 2**31 - 100), st.booleans(), st.booleans())
def test_answers_to_what_was_asked_before(
    count: int, first: int, in_one_packet: bool, asked_later: bool
) -> None:
    """A capture begins with the answers to requests that it does not have: frames of nobody knows
    what, each byte accounted for."""
    answers = [beaten(first + number) for number in range(count)]
    pieces = [Piece(False, each) for each in answers]
    if in_one_packet:
        pieces = [Piece(False, b"".join(answers))]
    last = first + count
    pieces += [Piece(True, beat(last)), Piece(False, beaten(last))]
    if not asked_later:
        pieces = [Piece(True, beat(last)), *pieces[:-2], pieces[-1]]
    items = listen(pieces, from_start=False)
    assert [kind for kind, *_ in kinds(items)] == ["unmatched"] * count
    size = len(answers[0])
    assert sorted(told(items), key=lambda each: each[2] or 0) == [
        *((first + number, None, number * size) for number in range(count)),
        (last, 0, count * size),
    ]
    unknown = [each for each in exchanges(items) if each.request is None]
    assert all(each.api_key == -1 and each.response_version is None for each in unknown)


def test_a_capture_of_answers_alone() -> None:
    """On a broker's port: one behind the other, their ids tell them."""
    pieces = [Piece(False, beaten(number) + beaten(number + 1)) for number in range(1, 7, 2)]
    items = listen(pieces, from_start=False)
    assert [number for number, *_ in told(items)] == [1, 2, 3, 4, 5, 6]
    assert kinds(items) == [("unmatched", "response", 0)] * 6


def test_a_version_to_come_is_found_where_packets_begin() -> None:
    newest = KAFKA.apis[18].request.VALID_VERSIONS.highest
    plain = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    raw = bytearray(request(plain, newest, 2))
    raw[6:8] = (newest + 1).to_bytes(2)
    answer = response(ApiVersionsResponse(), newest, 2)
    pieces = [Piece(True, beat(1)), Piece(False, beaten(1)), Piece(True, b"", 10)]
    pieces += [Piece(True, bytes(raw)), Piece(False, b"", 7), Piece(False, answer)]
    assert (2, len(beat(1)) + 10, len(beaten(1)) + 7) in told(listen(pieces))


class Counting:
    """Frames of which every eighth byte begins one that looks right and does not decode."""

    least = 8

    def __init__(self) -> None:
        self.looked = 0
        self.judged = 0
        self._responses = Responses(Expected({5}, frozenset({0}), 5, None), self.decodes)

    def candidates(self, search: Search) -> Any:
        for each in self._responses.candidates(search):
            self.looked += 1
            yield each

    def decodes(self, raw: bytes) -> bool:
        self.judged += len(raw)
        return False

    def follows(self, search: Search, first: Candidate, at: int) -> bool | None:
        return self._responses.follows(search, first, at)


@pytest.mark.parametrize("size", [8, 4000, 300_000])
@pytest.mark.parametrize("packet", [64, 1448])
def test_looking_is_linear(size: int, packet: int) -> None:
    """Up to half a megabyte of candidates, each of which takes ``size`` bytes to be judged."""
    held = bytearray()
    search, frames = Search(held), Counting()
    garbage = pack(">ii", size - 4, 5) * (packet // 8)
    total = quick(1 << 19, sampled=1 << 17)
    base = needs = 0
    for number in range(total // len(garbage)):
        search.packet(number * len(garbage), len(garbage))
        held += garbage
        if len(held) < needs:
            continue
        search.look(base, 0, False)
        found = search.find(frames, 4 << 20)
        assert found.at is None
        del held[: found.keep]
        base, needs = base + found.keep, found.needs
    assert frames.judged <= JUDGED_AT_LEAST + JUDGED_PER_BYTE * total
    # Each candidate that has to wait is met a second time.
    assert frames.looked <= 2 * total // 8 + number


@pytest.mark.usefixtures("extension")
def test_the_extension_finds_the_same_candidates(rng: random.Random) -> None:
    """Among bytes in which headers of requests, whole and spoilt, overlap with zeros and noise."""
    shape, found = every_request(), 0
    for _ in range(either(20_000, 1_000)):
        held = bytearray()
        for _ in range(rng.randrange(12)):
            size, key = rng.choice((0, 7, 8, 300, 1 << 27, -1)), rng.randrange(-2, 100)
            version = rng.randrange(34)
            held += rng.choice((pack(">ihh", size, key, version), bytes(9), rng.randbytes(9)))
            del held[len(held) - rng.choice((0, 0, 1, 5)) :]
        start = rng.randrange(len(held) + 2)
        with native.using(None):
            expected = [*shape.candidates(held, start)]
        with native.using(native.built()):
            assert [*shape.candidates(held, start)] == expected
        found += len(expected)
    assert found
