"""Any text as a transcript, and a broker that answers from it.

**Holds:** ``read_transcript`` returns one or raises DecodeError, whose path is a line. A transcript
is written and parses to an equal one. ``Replay`` answers requests of its own first exchanges,
decoded or not, with a message that its version can carry, with bytes, an end, or nothing. Reading
reserves at most 3000 bytes per byte of input.

**Accepted:** DecodeError from reading. KprotoError from ``Replay.answer`` if a recording is not a
message of its version: the dispatcher journals it and answers by itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Final

import kproto
from fuzz import bounds
from fuzz.mutations import Mutate, with_words
from kproto.codec.message import Message
from kproto.connection import RequestReceived, ServerConnection, UnsupportedRequest
from kproto.errors import DecodeError, KprotoError
from kproto.messages import RequestHeader
from kproto.transcript import (
    FORMAT,
    Exchange,
    Transcript,
    TranscriptConnection,
    TranscriptHeader,
    TranscriptMessage,
    TranscriptTrailer,
    read_transcript,
    write_transcript,
)
from mockbroker import MockCluster
from mockbroker.apis import Session
from mockbroker.serving.replay_stage import Replay
from mockbroker.simulation.cluster import Cluster

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 3000
MOST_ASKED: Final = 4
"""Number of a transcript's exchanges that are replayed."""

_WORDS: Final = (
    b'{"transcript":1}\n', b'{"end":true}\n', b'"outcome":"answered"',
    b'"outcome":"disconnected"', b'"outcome":"unanswered"', b'"outcome":"none-due"',
    b'"latency_ms":-1', b'"latency_ms":1e308', b'"api_key":18', b'"api_key":3', b'"api_key":36',
    b'"api_version":99999', b'"fell_back":true', b'"bare":true', b'"raw":"AAAAAA=="', b'"raw":""',
    b'"dialect":"auto"', b'"dialect":"kip-240"', b'"response":{"version":4,"body":',
    b'"body":null', b'"[redacted]"', b"[" * 1500, b"{}", b"null", b'"nodeId":-1', b'"host":""',
    b"2147483648", b'"\\ud800"', b"\n", b"\xff", b'"topics":[]', b'"problem":"x"',
    b'"version":-1', b'"connection":1',
)  # fmt: skip


def check(data: bytes) -> None:
    lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)

    def read() -> Transcript | None:
        try:
            return read_transcript(lines)
        except DecodeError as error:
            assert not error.path or error.path.startswith("line "), error.path
            return None

    found = bounds.allocating(read, data, a_byte=A_BYTE)
    if found is None:
        return
    assert read_transcript(list(write_transcript(found))) == found
    replay = Replay(found, _cluster(), sleep=_never)
    connection = ServerConnection()
    for exchange in found.exchanges[:MOST_ASKED]:
        for request in _requests(exchange):
            try:
                answer = replay.answer(connection, _SESSION, request)
            except KprotoError:  # the dispatcher journals it as a miss
                continue
            if answer is not None and isinstance(answer.answer, Message):
                body = answer.answer.encode(answer.version)
                again = type(answer.answer).decode(body, answer.version)
                assert again.encode(answer.version) == body


def _requests(exchange: Exchange) -> Iterator[RequestReceived | UnsupportedRequest]:
    """Return a request of the exchange's key and version, if there is one, and an undecoded one."""
    kafka = kproto.dialect("kafka")
    key, version = exchange.api_key, exchange.api_version
    api = kafka.apis.get(key)
    if api is not None and version in api.valid_versions:
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=7)
        try:
            body = api.request.from_json(exchange.request.body or {}, version)
        except KprotoError:
            body = api.request()
        yield RequestReceived(0, kafka, api, header, body, b"")
    yield UnsupportedRequest(1, key, version, 7, None, b"")


@cache
def _cluster() -> Cluster:
    return MockCluster(brokers=2, clock="manual").cluster


async def _never(_seconds: float) -> None:
    raise AssertionError("nobody waits here")


_SESSION: Final = Session(connection_id=1, broker_id=1, peer="127.0.0.1:1")


def seeds() -> Iterator[bytes]:
    """Return a capture's traffic without records, in transcripts of a few exchanges each."""
    codec = kproto.dialect("kafka")
    for key, version in ((3, 4), (3, 9), (10, 3), (18, 3), (45, 0), (46, 0), (60, 0), (1, 12)):
        api = codec.apis[key]
        request, response = api.request(), api.response()
        made = Exchange(
            number=0, api_key=key, api_version=version, outcome="answered", latency_ms=1.5,
            request=TranscriptMessage(version, request.to_json_value(version)),
            response=TranscriptMessage(version, response.to_json_value(version)),
        )  # fmt: skip
        ended = Exchange(
            number=1, api_key=key, api_version=version, outcome="disconnected",
            request=TranscriptMessage(version, problem="cut", raw=b"\0\0\0\x01\0"),
        )  # fmt: skip
        transcript = Transcript(
            TranscriptHeader(FORMAT, (TranscriptConnection(number=0),)),
            [made, ended],
            TranscriptTrailer(),
        )
        yield "".join(write_transcript(transcript)).encode()


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    return with_words(data, _WORDS, rng)
