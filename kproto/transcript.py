"""Transcripts: recorded exchanges between a client and its brokers, as text to read, edit and
replay.

``wiredump extract`` writes them and ``mockbroker serve --replay`` responds from them. This module
is the format only: it knows no sockets and no files (it reads and writes lines), neither how
traffic is captured nor how requests are answered.

A transcript is JSON lines. The first is a ``TranscriptHeader`` and the last a
``TranscriptTrailer``. Those in between are ``Exchange`` lines in the order of the requests. Fields
at their defaults are left out. Bodies are JSON as Kafka's own converters write it, at the version
in the exchange. Lines may be edited, removed or added by hand. Readers ignore unknown fields and
refuse files of a newer ``FORMAT``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from kproto.errors import DecodeError
from kproto.journal import ClientSoftware
from kproto.safe_text import printable_json

__all__ = [
    "FORMAT",
    "REDACTED",
    "Exchange",
    "Outcome",
    "Transcript",
    "TranscriptConnection",
    "TranscriptHeader",
    "TranscriptMessage",
    "TranscriptTrailer",
    "read_transcript",
    "write_transcript",
]

FORMAT: Final = 1
"""The version of the format."""

REDACTED: Final = "[redacted]"
"""Replaces a secret in a body, whatever the type of its field."""

Outcome: TypeAlias = Literal["answered", "unanswered", "disconnected", "none-due", "unknown"]
"""The outcome of a request. ``answered``: it has a response. ``unanswered``: the broker responded
to later requests but not to this one, or the client closed first. ``disconnected``: the broker, or
an unknown side, ended the connection. ``none-due``: a Produce with acks=0. ``unknown``: the source
does not contain it."""


class TranscriptMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One side of an exchange. ``version`` is that of the body: 0 if ApiVersions fell back.

    ``body`` is None if nothing could be decoded. ``problem`` says why the body is incomplete;
    ``raw`` is then the whole frame, size included, unless it had to be left out.
    """

    version: int
    body: dict[str, Any] | None = None
    problem: str = ""
    raw: bytes = b""


class Exchange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request and its outcome.

    ``at_ms`` counts from the beginning of the first connection. ``latency_ms`` is the client's,
    None if unknown; for ``disconnected`` it is the time from the request to the end. ``api`` is for
    readers. ``bare`` marks SASL tokens without a Kafka header (KIP-43).
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
    request: TranscriptMessage
    outcome: Outcome
    latency_ms: float | None = None
    fell_back: bool = False
    in_order: bool = True
    response: TranscriptMessage | None = None


class TranscriptConnection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One connection. Its exchanges refer to it by ``number``; ``client`` and ``broker`` are
    ``host:port``. ``from_start``: whether its first byte was captured. ``closed_at_ms`` is None if
    the source ended first."""

    number: int
    client: str = ""
    broker: str = ""
    at_ms: float = 0.0
    closed_at_ms: float | None = None
    from_start: bool = False
    client_software: ClientSoftware | None = None


class TranscriptHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """``transcript`` is the version of the format. ``hidden`` names what was replaced: ``secrets``,
    ``hosts``, ``records``, ``names``. ``made_by`` is the software."""

    transcript: int
    connections: tuple[TranscriptConnection, ...] = ()
    hidden: tuple[str, ...] = ()
    made_by: str = ""


class TranscriptTrailer(msgspec.Struct, frozen=True):
    """``left_out`` counts responses whose requests were not captured."""

    end: bool = True
    left_out: int = 0


class Transcript(msgspec.Struct, frozen=True):
    """A whole transcript: its first line, the exchanges in order, its last line."""

    beginning: TranscriptHeader
    exchanges: list[Exchange]
    ending: TranscriptTrailer


def write_transcript(transcript: Transcript) -> Iterator[str]:
    """Yield the lines of a transcript, with line ends."""
    encode = msgspec.json.Encoder().encode
    for each in (transcript.beginning, *transcript.exchanges, transcript.ending):
        yield printable_json(encode(each).decode()) + "\n"


def read_transcript(lines: Iterable[str]) -> Transcript:
    """Read a transcript from an open text file, or from any lines.

    Raises DecodeError, with the line as path and the offset of its first byte, for text that is not
    a transcript, has a newer format, or is truncated.
    """
    reader = _Reader()
    offset = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                reader.take(line)
            except (
                ValueError,
                RecursionError,
            ) as error:  # msgspec's own error, one of ours, or a lone surrogate
                raise DecodeError(str(error), offset=offset, path=f"line {number}") from None
        offset += len(line.encode(errors="replace"))
    if reader.beginning is None:
        raise DecodeError("not a transcript: it has no lines", offset=0)
    if reader.ending is None:
        raise DecodeError("the transcript is truncated: its last line is missing", offset=offset)
    return Transcript(reader.beginning, reader.exchanges, reader.ending)


_ENDING: Final = re.compile(r'\s*\{\s*"end"\s*:')


class _Reader:
    """Takes lines in order. Raises ValueError for a line in the wrong place."""

    def __init__(self) -> None:
        self.beginning: TranscriptHeader | None = None
        self.exchanges: list[Exchange] = []
        self.ending: TranscriptTrailer | None = None
        self._exchange = msgspec.json.Decoder(Exchange).decode

    def take(self, line: str) -> None:
        if self.beginning is None:
            self.beginning = self._begin(line)
        elif self.ending is not None:
            raise ValueError("no line may follow the last line of a transcript")
        elif _ENDING.match(line):
            self.ending = msgspec.json.decode(line, type=TranscriptTrailer)
        else:
            exchange = self._exchange(line)
            if (exchange.outcome == "answered") != (exchange.response is not None):
                raise ValueError(
                    "an exchange must have either a response or a reason for its absence"
                )
            self.exchanges.append(exchange)

    def _begin(self, line: str) -> TranscriptHeader:
        try:
            beginning = msgspec.json.decode(line, type=TranscriptHeader)
        except ValueError as error:
            raise ValueError(f"not a transcript of wiredump extract: {error}") from None
        if beginning.transcript != FORMAT:
            raise ValueError(
                f"a transcript of format {beginning.transcript}; this release reads {FORMAT}"
            )
        return beginning
