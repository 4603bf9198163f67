"""Connections cut into exchanges: nothing invented, nothing lost, every byte accounted for."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import kproto
from kproto.framing import encode_frame
from kproto.journal import ClientSoftware
from kproto.messages import ApiVersionsRequest, ApiVersionsResponse, ProduceRequest
from tests.wiredump.talk import KAFKA, Piece, Said, chopped, delivered, listen, talks, torn
from wiredump.model import Anomaly, Exchange, Item

RANDOMS = st.randoms(use_true_random=True)


def exchanges(items: list[Item]) -> list[Exchange]:
    return [item for item in items if isinstance(item, Exchange)]


def anomalies(items: list[Item]) -> list[Anomaly]:
    return [item for item in items if isinstance(item, Anomaly)]


def heard(items: list[Item]) -> list[Said]:
    """Whole exchanges, in the order in which requests were made."""
    found = []
    for each in exchanges(items):
        if each.request is not None and each.request.whole:
            whole = each.response is not None and each.response.whole
            found.append(
                Said(
                    each.api_key,
                    each.api_version,
                    each.correlation_id,
                    each.request.raw,
                    each.response.raw if whole and each.response is not None else None,
                )
            )
    return sorted(found, key=lambda said: said.correlation_id)


def accounted(items: list[Item], direction: str) -> tuple[int, int]:
    """Bytes of a direction that are in frames or anomalies, and bytes that are missing."""
    present = missing = 0
    for item in items:
        if isinstance(item, Exchange):
            frame = item.request if direction == "request" else item.response
            if frame is not None:
                present += frame.size - frame.missing
        elif item.direction == direction:
            present += item.size
            missing += item.missing
    return present, missing


def sums(pieces: list[Piece], forward: bool) -> tuple[int, int]:
    mine = [piece for piece in pieces if piece.forward == forward]
    return sum(len(piece.raw) for piece in mine), sum(piece.missing for piece in mine)


def balanced(items: list[Item], pieces: list[Piece]) -> bool:
    """Whether the sums of both directions agree, whichever end was taken for the client."""
    totals = [accounted(items, direction) for direction in ("request", "response")]
    return sorted(totals) == sorted([sums(pieces, True), sums(pieces, False)])


@given(talks(), RANDOMS, st.sampled_from([1, 3, 17, 200, 100_000]))
def test_what_was_said_is_what_is_heard(said: list[Said], rng: random.Random, most: int) -> None:
    items = listen(chopped(delivered(said), rng, most))
    assert heard(items) == said
    assert not anomalies(items)
    for each in exchanges(items):
        assert each.in_order
        assert each.connection.protocol == "kafka"
        assert each.client_id == (None if each.api_key == 7 and not each.api_version else "c-ü")


@given(talks(), RANDOMS, st.sampled_from([5, 40, 1000]), st.sampled_from([0.05, 0.3, 0.9]))
def test_with_holes_nothing_is_made_up_and_each_byte_is_accounted_for(
    said: list[Said], rng: random.Random, most: int, share: float
) -> None:
    pieces = torn(chopped(delivered(said), rng, most), rng, share)
    items = listen(pieces)
    assert accounted(items, "request") == sums(pieces, True)
    assert accounted(items, "response") == sums(pieces, False)
    known = {each.correlation_id: each for each in said}
    for each in heard(items):
        assert each.request == known[each.correlation_id].request
        assert each.response in (None, known[each.correlation_id].response)


@given(talks(), RANDOMS, st.data())
def test_a_hole_costs_the_frames_it_touches_and_no_other(
    said: list[Said], rng: random.Random, data: st.DataObject
) -> None:
    """Where the size of a frame was seen, the next one is found behind the hole; so the only
    others that may be lost are those of a connection whose step was lost."""
    victim = data.draw(st.integers(0, len(said) - 1))
    pieces = []
    for number, each in enumerate(said):
        raw = each.request
        if number == victim and len(raw) > 20:
            at = data.draw(st.integers(14, len(raw) - 1))
            size = data.draw(st.integers(1, len(raw) - at))
            pieces += [Piece(True, raw[:at]), Piece(True, b"", size)]
            pieces += [Piece(True, raw[at + size :])] if at + size < len(raw) else []
        else:
            pieces.append(Piece(True, raw))
        if each.response is not None:
            pieces.append(Piece(False, each.response))
    untouched = [each for number, each in enumerate(said) if number != victim]
    assert [each for each in heard(listen(pieces)) if each in untouched] == untouched


@given(talks(most=4), RANDOMS, st.data(), st.booleans(), st.sampled_from([9092, 777]))
def test_a_capture_may_begin_in_the_middle(
    said: list[Said], rng: random.Random, data: st.DataObject, turned: bool, port: int
) -> None:
    """Whole requests behind the beginning are found, whichever end sent the first packet, and
    their responses too; bytes before count as such."""
    skipped = data.draw(st.integers(1, len(said[0].request)))
    whole = delivered(said)
    pieces = [Piece(True, whole[0].raw[skipped:]), *whole[1:]]
    pieces = [piece for piece in chopped(pieces, rng, 100) if piece.raw]
    items = listen(pieces, from_start=False, port=port, turned=turned)
    assert balanced(items, pieces)
    requests = [each.request for each in heard(items)]
    # Random bytes may happen to be a request, all of it; one such in a thousand examples.
    assume(all(request in [each.request for each in said] for request in requests))
    assert set(said[1:]) <= set(heard(items))


@given(st.binary(max_size=3000), st.binary(max_size=3000), RANDOMS, st.booleans())
def test_any_bytes_are_accounted_for(
    there: bytes, back: bytes, rng: random.Random, from_start: bool
) -> None:
    pieces = chopped([Piece(True, there), Piece(False, back)], rng, 50)
    rng.shuffle(pieces)
    pieces = torn(pieces, rng, 0.1)
    for port in (9092, 777):
        items = listen(pieces, from_start=from_start, port=port)
        assert balanced(items, pieces)


def versions_request(version: int, correlation_id: int) -> bytes:
    body = ApiVersionsRequest(client_software_name="lib", client_software_version="1.2")
    return KAFKA.encode_request(
        body, api_version=version, correlation_id=correlation_id, client_id="c"
    )


def test_api_versions_falls_back_and_its_client_is_remembered() -> None:
    refused = KAFKA.encode_response(
        ApiVersionsResponse(error_code=35), api_version=0, correlation_id=1
    )
    again = KAFKA.encode_response(ApiVersionsResponse(), api_version=3, correlation_id=2)
    pieces = [
        Piece(True, versions_request(4, 1)),
        Piece(False, refused),
        Piece(True, versions_request(3, 2)),
        Piece(False, again),
    ]
    first, second = exchanges(listen(pieces))
    assert (first.api_version, first.response_version) == (4, 0)
    assert (second.api_version, second.response_version) == (3, 3)
    assert second.software == ClientSoftware("lib", "1.2")
    assert (first.latency_ns, second.latency_ns) == (10**9, 10**9)


def test_a_produce_that_wants_no_answer_has_none() -> None:
    for version in ProduceRequest.VALID_VERSIONS:
        frame = KAFKA.encode_request(
            ProduceRequest(acks=0, timeout_ms=1, topic_data=[]),
            api_version=version,
            correlation_id=3,
            client_id=None,
        )
        (exchange,) = exchanges(listen([Piece(True, frame)]))
        assert not exchange.expected


def test_answers_out_of_order_are_paired_and_marked() -> None:
    answers = [
        KAFKA.encode_response(ApiVersionsResponse(), api_version=3, correlation_id=number)
        for number in (1, 2)
    ]
    pieces = [Piece(True, versions_request(3, 1)), Piece(True, versions_request(3, 2))]
    pieces += [Piece(False, answers[1]), Piece(False, answers[0])]
    assert [(each.correlation_id, each.in_order) for each in exchanges(listen(pieces))] == [
        (2, False),
        (1, True),
    ]


def test_unanswered_and_unasked_are_told() -> None:
    answer = KAFKA.encode_response(ApiVersionsResponse(), api_version=3, correlation_id=9)
    items = listen([Piece(True, versions_request(3, 1)), Piece(False, answer)])
    assert [anomaly.kind for anomaly in anomalies(items)] == ["unanswered", "unmatched"]
    assert [each.correlation_id for each in exchanges(items)] == [1, 9]


@pytest.mark.parametrize("tokens", [1, 2])
def test_bare_sasl_tokens_are_no_requests(tokens: int) -> None:
    from kproto.messages import SaslHandshakeRequest, SaslHandshakeResponse

    handshake = KAFKA.encode_request(
        SaslHandshakeRequest(mechanism="PLAIN"), api_version=0, correlation_id=1, client_id="c"
    )
    agreed = KAFKA.encode_response(SaslHandshakeResponse(), api_version=0, correlation_id=1)
    pieces = [Piece(True, handshake), Piece(False, agreed)]
    for number in range(tokens):
        pieces += [
            Piece(True, encode_frame(b"\0user\0secret%d" % number)),
            Piece(False, encode_frame(b"")),
        ]
    answer = KAFKA.encode_response(ApiVersionsResponse(), api_version=3, correlation_id=2)
    pieces += [Piece(True, versions_request(3, 2)), Piece(False, answer)]
    items = listen(pieces)
    assert not anomalies(items)
    found = exchanges(items)
    assert [each.api_key for each in found] == [17, *[36] * tokens, 18]
    assert all(
        each.request is not None and each.request.sasl and each.response is not None
        for each in found[1:-1]
    )


def test_tls_is_told_and_counted() -> None:
    hello = b"\x16\x03\x01\x02\x00" + bytes(512)
    pieces = [Piece(True, hello), Piece(False, hello * 2)]
    items = listen(pieces)
    assert [(anomaly.kind, anomaly.size) for anomaly in anomalies(items)] == [
        ("tls", 517),
        ("tls", 1034),
    ]


def test_a_draft_is_recognised_by_its_bytes() -> None:
    codec = kproto.dialect("kip-240")
    api = codec.apis[32240]
    frame = codec.encode_request(api.request(), api_version=0, correlation_id=5, client_id="x")
    (exchange,) = exchanges(listen([Piece(True, frame)]))
    assert exchange.dialect == "kip-240"
