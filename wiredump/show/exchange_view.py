"""An exchange with its decoded bodies, which are decoded on first use, and without secrets unless
they are wanted. Knows no output."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import msgspec

from kproto.dialects import Dialect
from wiredump.bodies import Bodies, ErrorFound, Side, read
from wiredump.body_texts import BodyTexts, brief_texts_of
from wiredump.dialects import codec_of
from wiredump.field_trees import base64_size, bytes_fields, changed
from wiredump.model import Exchange
from wiredump.redact import redacted

__all__ = ["LONGEST_BYTES", "ExchangeView", "json_text", "seconds", "shortened_bytes"]

LONGEST_BYTES: Final = 30
"""The most bytes that a line shows in base64."""

_LONGEST_TEXT: Final = 40
"""The characters of base64 that these take."""


class ExchangeView:
    """An exchange to show. ``codec`` is a dialect that was loaded from a folder, for exchanges in
    it."""

    def __init__(
        self, exchange: Exchange, codec: Dialect | None = None, *, secrets: bool = False
    ) -> None:
        self.exchange = exchange
        self.secrets = secrets
        self._codec = codec

    @cached_property
    def codec(self) -> Dialect:
        return codec_of(self.exchange, self._codec)

    @cached_property
    def bodies(self) -> Bodies:
        bodies = read(self.exchange, self._codec)
        if self.secrets:
            return bodies
        return bodies._replace(
            request=_without_secrets(bodies.request), response=_without_secrets(bodies.response)
        )

    @cached_property
    def _brief(self) -> BodyTexts | None:
        """Both bodies as short texts. None if they have to be decoded: for the places of errors,
        or because they cannot be printed otherwise."""
        brief = brief_texts_of(self.exchange, self._codec, LONGEST_BYTES, secrets=self.secrets)
        return brief if brief is not None and not brief.codes else None

    @property
    def api(self) -> str:
        return self.bodies.api if self._brief is None else self._brief.api

    @property
    def errors(self) -> list[ErrorFound]:
        """The error codes in the response."""
        return self.bodies.errors if self._brief is None else []

    @property
    def problems(self) -> tuple[str, str]:
        """Why the request and the response could not be read whole; empty where they could."""
        if self._brief is not None:
            return "", ""
        request, response = self.bodies.request, self.bodies.response
        return request.problem if request else "", response.problem if response else ""

    @property
    def timestamp_ns(self) -> int:
        """The beginning of the request or, without a request, of the response."""
        exchange = self.exchange
        frame = exchange.request if exchange.request is not None else exchange.response
        return frame.first_ns if frame is not None else exchange.connection.opened_ns

    @property
    def unanswered(self) -> bool:
        """Whether a response was expected but not captured."""
        exchange = self.exchange
        return exchange.request is not None and exchange.expected and exchange.response is None

    @property
    def fell_back(self) -> bool:
        """ApiVersions: whether the response has an older version than the request (KIP-511)."""
        version = self.exchange.response_version
        return version is not None and version != self.exchange.api_version

    @property
    def failed(self) -> bool:
        """Whether something is wrong: an error code, a missing response, a body that cannot be
        decoded."""
        return bool(self.errors) or self.unanswered or any(self.problems)

    @property
    def short_texts(self) -> tuple[str, str]:
        """As ``texts``, with the length of long bytes in place of the bytes."""
        if self._brief is None:
            return self._short(self.bodies.request), self._short(self.bodies.response)
        request, response = self._brief.request, self._brief.response
        return (request and request.body) or "", (response and response.body) or ""

    def _short(self, side: Side | None) -> str:
        if side is None or side.body is None:
            return ""
        if not side.message:  # a token of any mechanism
            return json_text(side.body)
        tree = bytes_fields(self.codec.message(side.message), side.version)
        return json_text(changed(side.body, tree, shortened_bytes))

    @cached_property
    def texts(self) -> tuple[str, str]:
        """The JSON of both bodies; empty without a body."""
        sides = (self.bodies.request, self.bodies.response)
        request, response = (
            json_text(side.body) if side is not None and side.body is not None else ""
            for side in sides
        )
        return request, response


def json_text(value: object) -> str:
    """Format as JSON on one line, without spaces."""
    return msgspec.json.encode(value).decode()


def seconds(duration_ns: int) -> str:
    """Format a duration: ``0.12 ms``, ``4.1 ms``, ``1.25 s``."""
    milliseconds = duration_ns / 1e6
    if milliseconds < 1:
        return f"{milliseconds:.2f} ms"
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def shortened_bytes(name: str, _: str, held: Any) -> tuple[str, Any]:
    """Replace long bytes in a field's JSON by their number, for ``field_trees.changed``."""
    return name, [_bytes(item) for item in held] if isinstance(held, list) else _bytes(held)


def _bytes(text: str) -> str:
    """Return base64 text, or the number of bytes if it is too long to be read."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"({base64_size(text)} bytes)"


def _without_secrets(side: Side | None) -> Side | None:
    if side is None or side.body is None:
        return side
    return side._replace(body=redacted(side.message, side.body))
