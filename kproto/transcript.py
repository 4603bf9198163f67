"""Transcripts: what a client and its brokers said, on one connection or several, as a text that
can be read, kept, and said again.

``wiredump extract`` writes them, ``mockbroker serve --replay`` answers from them. This file is the
format: it knows no sockets, no files (it reads and writes lines), and nothing of how anything was
captured or is answered.

A transcript is JSON lines. The first is a ``Beginning``, the last an ``Ending``, and each between
them an ``Exchange``, in the order of the requests; fields at their defaults are left out. Bodies
are JSON as Kafka's own converters write it, at the version the exchange names. Lines may be edited,
taken out or put in by hand. Readers pass over fields they do not know; a file of a newer ``FORMAT``
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from kproto.errors import DecodeError
from kproto.journal import ClientSoftware

__all__ = [
    "FORMAT",
    "REDACTED",
    "Beginning",
    "Connected",
    "Ending",
    "Exchange",
    "Outcome",
    "Said",
    "Transcript",
    "read_transcript",
    "write_transcript",
]

FORMAT: Final = 1

REDACTED: Final = "[redacted]"
"""What stands in a body in the place of a secret, whatever the field's type."""

Outcome: TypeAlias = Literal["answered", "unanswered", "disconnected", "none-due", "unknown"]
"""``unanswered``: later requests were answered, this one was not, or its client closed first.
``disconnected``: the broker, or nobody knows who, ended the connection instead. ``none-due``: a
Produce with acks=0. ``unknown``: the source does not have it."""


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """One side of an exchange. ``version`` is that of the body: 0 where ApiVersions fell back.

    ``body`` is None where nothing could be decoded. ``problem`` says why the body is not whole;
    ``raw`` is then the whole frame, size included, unless it had to be left out.
    """

    version: int
    body: dict[str, Any] | None = None
    problem: str = ""
    raw: bytes = b""


class Exchange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request, and what came of it.

    ``at_ms`` counts from the first connection's beginning; ``latency_ms`` is the client's, None
    where it is not known, and for ``disconnected`` how long after the request the end came.
    ``api`` is for people. ``bare``: SASL tokens without a Kafka header (KIP-43).
    """

    number: int
    connection: int = 0
    at_ms: float = 0.0
    api: str = ""
    api_key: int
    api_version: int
    correlation_id: int = 0
    client_id: str | None = None
    dialect: str = "kafka"
    bare: bool = False
    request: Said
    outcome: Outcome
    latency_ms: float | None = None
    fell_back: bool = False
    in_order: bool = True
    response: Said | None = None


class Connected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One connection. ``number`` is what its exchanges call it, ``client`` and ``broker`` are
    ``host:port``. ``from_start``: whether its first byte was captured; ``closed_at_ms`` is None
    where the source ended first."""

    number: int
    client: str = ""
    broker: str = ""
    at_ms: float = 0.0
    closed_at_ms: float | None = None
    from_start: bool = False
    client_software: ClientSoftware | None = None


class Beginning(msgspec.Struct, frozen=True, omit_defaults=True):
    """``transcript`` is the format's version. ``hidden`` names what was replaced: ``secrets``,
    ``hosts``, ``records``, ``names``. ``made_by`` is the software."""

    transcript: int
    connections: tuple[Connected, ...] = ()
    hidden: tuple[str, ...] = ()
    made_by: str = ""


class Ending(msgspec.Struct, frozen=True):
    """``left_out`` counts responses whose requests were not seen."""

    end: bool = True
    left_out: int = 0


class Transcript(msgspec.Struct, frozen=True):
    beginning: Beginning
    exchanges: list[Exchange]
    ending: Ending


def write_transcript(transcript: Transcript) -> Iterator[str]:
    """Its lines, each with its end."""
    encode = msgspec.json.Encoder().encode
    yield encode(transcript.beginning).decode() + "\n"
    for exchange in transcript.exchanges:
        yield encode(exchange).decode() + "\n"
    yield encode(transcript.ending).decode() + "\n"


def read_transcript(lines: Iterable[str]) -> Transcript:
    """The transcript that an open text file, or any lines, hold.

    Raises DecodeError, its path the line and its offset the bytes before it, for what is no
    transcript, or one of a newer format, or is cut.
    """
    reader = _Reader()
    offset = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                reader.take(line)
            except (ValueError, RecursionError) as error:  # msgspec's own, ours, a lone surrogate
                raise DecodeError(str(error), offset=offset, path=f"line {number}") from None
        offset += len(line.encode(errors="replace"))
    if reader.beginning is None:
        raise DecodeError("no transcript: it has no lines", offset=0)
    if reader.ending is None:
        raise DecodeError("the transcript is cut: its last line is missing", offset=offset)
    return Transcript(reader.beginning, reader.exchanges, reader.ending)


_ENDING: Final = re.compile(r'\s*\{\s*"end"\s*:')


class _Reader:
    """Takes lines in order; raises ValueError for one that does not belong there."""

    def __init__(self) -> None:
        self.beginning: Beginning | None = None
        self.exchanges: list[Exchange] = []
        self.ending: Ending | None = None
        self._exchange = msgspec.json.Decoder(Exchange).decode

    def take(self, line: str) -> None:
        if self.beginning is None:
            self.beginning = self._begin(line)
        elif self.ending is not None:
            raise ValueError("nothing may follow a transcript's end")
        elif _ENDING.match(line):
            self.ending = msgspec.json.decode(line, type=Ending)
        else:
            exchange = self._exchange(line)
            if (exchange.outcome == "answered") != (exchange.response is not None):
                raise ValueError("an exchange has a response if, and only if, it was answered")
            self.exchanges.append(exchange)

    def _begin(self, line: str) -> Beginning:
        try:
            beginning = msgspec.json.decode(line, type=Beginning)
        except ValueError as error:
            raise ValueError(f"not a transcript of wiredump extract: {error}") from None
        if beginning.transcript != FORMAT:
            raise ValueError(
                f"a transcript of format {beginning.transcript}; this release reads {FORMAT}"
            )
        return beginning
