"""One connection's exchanges as a transcript: bodies decoded, outcomes told, what is to be hidden
hidden."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import kproto
from kproto.dialects import Dialect
from kproto.journal import printable
from kproto.transcript import FORMAT, Beginning, Ending, Outcome, Said, Transcript
from kproto.transcript import Exchange as Told
from wiredump.bodies import Side, codec_of, read
from wiredump.extraction.choosing import Choice
from wiredump.extraction.hiding import Hiding
from wiredump.model import Anomaly, Connection, Exchange, Frame

__all__ = ["transcript_of"]

_LOSSES: Final = frozenset({"gap", "cut", "unframed", "tls", "not-kafka"})
"""Anomalies after which nobody can say that a response never came."""


def transcript_of(
    choice: Choice, hiding: Hiding, codec: Dialect | None = None, *, raw: bool = False
) -> Transcript:
    """``raw`` keeps the bytes of what cannot be decoded even where they may tell what is to be
    hidden."""
    connection = choice.connection
    asked = sorted(
        (each for each in choice.exchanges if each.request is not None), key=_request_offset
    )
    outcomes = _outcomes(asked, choice.anomalies, connection)
    teller = _Teller(connection, hiding, codec, raw)
    beginning = Beginning(
        transcript=FORMAT,
        client=hiding.endpoint(connection.client),
        broker=hiding.endpoint(connection.broker),
        client_software=connection.software,
        from_start=connection.from_start,
        hidden=hiding.kinds,
        made_by=f"kproto {kproto.__version__}",
    )
    exchanges = [
        teller.tell(number, exchange, outcome)
        for number, (exchange, outcome) in enumerate(zip(asked, outcomes, strict=True))
    ]
    closed_ns = connection.closed_ns
    ending = Ending(
        end="open" if closed_ns is None else "closed",
        at_ms=None if closed_ns is None else _milliseconds(closed_ns - connection.opened_ns),
        left_out=len(choice.exchanges) - len(asked),
    )
    return Transcript(beginning, exchanges, ending)


def _request_offset(exchange: Exchange) -> int:
    assert exchange.request is not None
    return exchange.request.offset


def _outcomes(
    asked: list[Exchange], anomalies: Iterable[Anomaly], connection: Connection
) -> list[Outcome]:
    """What became of each request, in order. Without a loss, an unanswered one before an answered
    one was passed over by the broker; one behind all of those met the connection's end."""
    is_lossy = any(
        each.kind in _LOSSES and each.direction in ("response", None) for each in anomalies
    )
    last = max((at for at, each in enumerate(asked) if each.response is not None), default=-1)
    outcomes: list[Outcome] = []
    for at, exchange in enumerate(asked):
        if exchange.response is not None:
            outcomes.append("answered")
        elif not exchange.expected:
            outcomes.append("none-due")
        elif is_lossy:
            outcomes.append("unknown")
        elif at < last:
            outcomes.append("unanswered")
        else:
            outcomes.append("unknown" if connection.closed_ns is None else "disconnected")
    return outcomes


class _Teller:
    def __init__(
        self, connection: Connection, hiding: Hiding, codec: Dialect | None, raw: bool
    ) -> None:
        self._connection = connection
        self._hiding = hiding
        self._codec = codec
        self._raw = raw

    def tell(self, number: int, exchange: Exchange, outcome: Outcome) -> Told:
        asked, connection = exchange.request, self._connection
        assert asked is not None
        bodies = read(exchange, self._codec)
        using = codec_of(exchange, self._codec)
        assert bodies.request is not None
        response = None
        if exchange.response is not None and bodies.response is not None:
            response = self._said(using, bodies.response, exchange.response)
        latency_ns = exchange.latency_ns
        if outcome == "disconnected" and connection.closed_ns is not None:
            latency_ns = max(connection.closed_ns - asked.last_ns, 0)
        client_id = exchange.client_id
        version = exchange.api_version
        return Told(
            number=number,
            api_key=exchange.api_key,
            api_version=version,
            request=self._said(using, bodies.request, asked),
            outcome=outcome,
            api=bodies.api,
            response=response,
            at_ms=_milliseconds(asked.first_ns - connection.opened_ns),
            latency_ms=None if latency_ns is None else _milliseconds(latency_ns),
            correlation_id=exchange.correlation_id,
            client_id=None if client_id is None else self._hiding.name("client", client_id),
            dialect=exchange.dialect,
            fell_back=exchange.response_version not in (None, version),
            in_order=exchange.in_order,
            bare=asked.sasl,
        )

    def _said(self, using: Dialect, side: Side, frame: Frame) -> Said:
        cls = using.message(side.message) if side.message else None
        body = side.body
        if body is not None and cls is not None:
            body = self._hiding.body(cls, side.version, body)
        if not side.problem:
            return Said(side.version, body)
        problem, raw = printable(side.problem), b""
        if frame.raw and (self._raw or not self._hiding.tells(cls, side.version)):
            raw = frame.raw
        elif frame.raw:
            problem += " (its bytes are left out: they may tell what is to be hidden)"
        return Said(side.version, body, problem, raw)


def _milliseconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 3)
