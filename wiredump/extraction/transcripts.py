"""Convert the exchanges of connections to a transcript: decode bodies, find outcomes, and hide what
is to be hidden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import kproto
from kproto.dialects import Dialect
from kproto.safe_text import printable
from kproto.transcript import (
    FORMAT,
    Outcome,
    Transcript,
    TranscriptConnection,
    TranscriptHeader,
    TranscriptMessage,
    TranscriptTrailer,
)
from kproto.transcript import Exchange as TranscriptExchange
from wiredump.bodies import Side, read
from wiredump.dialects import codec_of
from wiredump.extraction.choosing import Choice
from wiredump.extraction.hiding import Hiding
from wiredump.model import Anomaly, Connection, Exchange, Frame

__all__ = ["transcript_of"]

_LOSSES: Final = frozenset({"gap", "reassembly-limit", "cut", "unframed", "tls", "not-kafka"})
"""Anomalies after which a missing response may have been sent."""


def transcript_of(
    choices: Sequence[Choice], hiding: Hiding, codec: Dialect | None = None, *, raw: bool = False
) -> Transcript:
    """Return the transcript of one or more connections, with all exchanges in the order of
    requests. ``raw`` keeps the bytes of frames that cannot be decoded, even if they may have
    something to hide."""
    opened_ns = min(choice.connection.opened_ns for choice in choices)
    beginning = TranscriptHeader(
        transcript=FORMAT,
        connections=tuple(_connected(each.connection, hiding, opened_ns) for each in choices),
        hidden=hiding.kinds,
        made_by=f"kproto {kproto.__version__}",
    )
    converter = _Converter(hiding, codec, opened_ns, raw)
    requests = sorted(
        (each for choice in choices for each in _requests(choice)), key=lambda each: each[0]
    )
    exchanges = [
        converter.convert(number, exchange, outcome)
        for number, (_, exchange, outcome) in enumerate(requests)
    ]
    left_out = sum(len(choice.exchanges) for choice in choices) - len(requests)
    return Transcript(beginning, exchanges, TranscriptTrailer(left_out=left_out))


def _connected(connection: Connection, hiding: Hiding, opened_ns: int) -> TranscriptConnection:
    closed_ns = connection.closed_ns
    return TranscriptConnection(
        number=connection.number,
        client=hiding.endpoint(connection.client),
        broker=hiding.endpoint(connection.broker),
        at_ms=_milliseconds(connection.opened_ns - opened_ns),
        closed_at_ms=None if closed_ns is None else _milliseconds(closed_ns - opened_ns),
        from_start=connection.from_start,
        client_software=connection.software,
    )


def _requests(choice: Choice) -> Iterator[tuple[tuple[int, int, int], Exchange, Outcome]]:
    """Return the exchanges of one connection with their outcomes, each with a position among all:
    by its time, but never before an earlier one of its connection."""
    exchanges = sorted(
        (each for each in choice.exchanges if each.request is not None), key=_request_offset
    )
    outcomes = _outcomes(exchanges, choice.anomalies, choice.connection)
    at_ns = 0
    for place, (exchange, outcome) in enumerate(zip(exchanges, outcomes, strict=True)):
        assert exchange.request is not None
        at_ns = max(at_ns, exchange.request.first_ns)
        yield (at_ns, choice.connection.number, place), exchange, outcome


def _request_offset(exchange: Exchange) -> int:
    assert exchange.request is not None
    return exchange.request.offset


def _outcomes(
    exchanges: list[Exchange], anomalies: Iterable[Anomaly], connection: Connection
) -> list[Outcome]:
    """Return the outcome of each request, in order. If nothing was lost, a request without a
    response was skipped by the broker if a later one has a response; otherwise the connection ended
    first, or the client gave up and closed it."""
    is_lossy = any(
        each.kind in _LOSSES and each.direction in ("response", None) for each in anomalies
    )
    last = max((at for at, each in enumerate(exchanges) if each.response is not None), default=-1)
    outcomes: list[Outcome] = []
    for at, exchange in enumerate(exchanges):
        if exchange.response is not None:
            outcomes.append("answered")
        elif not exchange.expected:
            outcomes.append("none-due")
        elif is_lossy:
            outcomes.append("unknown")
        elif at < last or connection.closed_by == "client":
            outcomes.append("unanswered")
        else:
            outcomes.append("unknown" if connection.closed_ns is None else "disconnected")
    return outcomes


class _Converter:
    def __init__(self, hiding: Hiding, codec: Dialect | None, opened_ns: int, raw: bool) -> None:
        self._hiding = hiding
        self._codec = codec
        self._opened_ns = opened_ns
        self._raw = raw

    def convert(self, number: int, exchange: Exchange, outcome: Outcome) -> TranscriptExchange:
        request, connection = exchange.request, exchange.connection
        assert request is not None
        bodies = read(exchange, self._codec)
        using = codec_of(exchange, self._codec)
        assert bodies.request is not None
        response = None
        if exchange.response is not None and bodies.response is not None:
            response = self._message(using, bodies.response, exchange.response)
        latency_ns = exchange.latency_ns
        if outcome == "disconnected" and connection.closed_ns is not None:
            latency_ns = max(connection.closed_ns - request.last_ns, 0)
        client_id = exchange.client_id
        version = exchange.api_version
        return TranscriptExchange(
            number=number,
            connection=connection.number,
            api_key=exchange.api_key,
            api_version=version,
            request=self._message(using, bodies.request, request),
            outcome=outcome,
            api=bodies.api,
            response=response,
            at_ms=_milliseconds(request.first_ns - self._opened_ns),
            latency_ms=None if latency_ns is None else _milliseconds(latency_ns),
            correlation_id=exchange.correlation_id,
            client_id=None if client_id is None else self._hiding.name("client", client_id),
            dialect=exchange.dialect,
            fell_back=exchange.response_version not in (None, version),
            in_order=exchange.in_order,
            bare=request.sasl,
        )

    def _message(self, using: Dialect, side: Side, frame: Frame) -> TranscriptMessage:
        cls = using.message(side.message) if side.message else None
        body = side.body
        if body is not None and cls is not None:
            body = self._hiding.body(cls, side.version, body)
        if not side.problem:
            return TranscriptMessage(side.version, body)
        problem, raw = printable(side.problem), b""
        if frame.raw and (self._raw or not self._hiding.reveals(cls, side.version)):
            raw = frame.raw
        elif frame.raw:
            problem += " (its bytes are left out: they may tell what is to be hidden)"
        return TranscriptMessage(side.version, body, problem, raw)


def _milliseconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 3)
