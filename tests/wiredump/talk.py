"""Made-up conversations: requests and responses of any api, as the bytes of two directions, and
those bytes cut, torn and delivered as a capture might have them."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import strategies as st

import kproto
from kproto.codec.registry import schema_of
from kproto.connection import has_response
from kproto.dialects import Dialect
from kproto.reference.random_trees import random_tree
from tests.support.instances import to_instance
from wiredump.conversation import Conversation
from wiredump.model import Connection, Item, Place

KAFKA = kproto.dialect("kafka")
KEYS = [key for key in KAFKA.apis if key not in (17, 36)]


class Said(NamedTuple):
    """A request's frame, and the response's or None."""

    api_key: int
    api_version: int
    correlation_id: int
    request: bytes
    response: bytes | None


class Piece(NamedTuple):
    """Bytes of one direction, or (``raw`` empty) so many that are missing."""

    forward: bool
    raw: bytes
    missing: int = 0


def say(
    rng: random.Random, correlation_id: int, codec: Dialect = KAFKA, client_id: str | None = "c-ü"
) -> Said:
    """One exchange of a random api, with random bodies."""
    key = rng.choice(KEYS)
    api = codec.apis[key]
    version = rng.choice(list(api.valid_versions))
    bodies = [
        to_instance(cls, random_tree(schema_of(cls), version, rng), schema_of(cls))
        for cls in (api.request, api.response)
    ]
    request = codec.encode_request(
        bodies[0], api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    response = codec.encode_response(bodies[1], api_version=version, correlation_id=correlation_id)
    answered = has_response(key, bodies[0])
    return Said(key, version, correlation_id, request, response if answered else None)


@st.composite
def talks(draw: st.DrawFn, most: int = 6) -> list[Said]:
    rng = draw(st.randoms(use_true_random=True))
    first = draw(st.integers(0, 2**31 - 100))
    return [say(rng, first + number) for number in range(draw(st.integers(1, most)))]


def delivered(said: list[Said]) -> list[Piece]:
    """In order: each request, then its response."""
    pieces = []
    for each in said:
        pieces.append(Piece(True, each.request))
        if each.response is not None:
            pieces.append(Piece(False, each.response))
    return pieces


def chopped(pieces: list[Piece], rng: random.Random, most: int) -> list[Piece]:
    """The same bytes in other chunks: some joined, some cut."""
    out: list[Piece] = []
    for piece in pieces:
        at = 0
        while at < len(piece.raw):
            step = rng.randint(1, most)
            out.append(Piece(piece.forward, piece.raw[at : at + step]))
            at += step
    return out


def torn(pieces: list[Piece], rng: random.Random, share: float) -> list[Piece]:
    """Some of the chunks missing."""
    return [
        Piece(piece.forward, b"", len(piece.raw)) if rng.random() < share else piece
        for piece in pieces
    ]


def listen(
    pieces: list[Piece], *, from_start: bool = True, port: int = 9092, turned: bool = False
) -> list[Item]:
    """What a conversation makes of them, each piece a packet at its number's second. ``turned``:
    the broker is taken for the client at first."""
    ends = ["10.0.0.1:50000", f"10.0.0.2:{port}"]
    if turned:
        ends.reverse()
        pieces = [piece._replace(forward=not piece.forward) for piece in pieces]
    conversation = Conversation(Connection(0, ends[0], ends[1], 0, from_start=from_start))
    items: list[Item] = []
    for number, piece in enumerate(pieces):
        place, now = Place(0, number), number * 10**9
        if piece.raw:
            items += conversation.data(piece.forward, piece.raw, now, place)
        else:
            items += conversation.gap(piece.forward, piece.missing, "lost", now, place)
    return items + conversation.end("the capture ends")
