"""Which frames can be decoded, judging by their headers: those of the APIs and versions of a
dialect, with their requests. The extension computes the same (native/exchanges.c)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kproto.dialects import AutoDialect, Dialect
from wiredump.frame_boundaries import REQUEST_PREFIX, RESPONSE_PREFIX, every_request
from wiredump.model import Exchange, Frame
from wiredump.unread import Unread

__all__ = ["Readable"]

_MOST: Final = 255


class Readable:
    """The requests of a dialect; ``auto``, which None stands for, has those of all releases and
    drafts."""

    def __init__(self, codec: Dialect | None = None) -> None:
        if codec is None or isinstance(codec, AutoDialect):
            self._newest = every_request().newest
        else:
            versions = codec.request_versions()
            self._newest = {key: each.highest for key, each in versions.items()}

    def table(self) -> bytes:
        """Return, by API key, one more than the highest version; 0 if there is none."""
        counts = bytearray(max(self._newest) + 1)
        for key, newest in self._newest.items():
            counts[key] = min(newest + 1, _MOST)
        return bytes(counts)

    def has_request(self, exchange: Exchange) -> bool:
        """Whether an exchange has a request that can be decoded."""
        request = exchange.request
        return (
            request is not None
            and not request.sasl
            and exchange.is_decoded
            and self._knows(exchange)
        )

    def _knows(self, exchange: Exchange) -> bool:
        return 0 <= exchange.api_version <= self._newest.get(exchange.api_key, -1)

    def unread_of(self, exchange: Exchange) -> Iterator[tuple[Unread, int]]:
        """Yield the sizes of the parts of its frames that cannot be read, with the reasons: frames
        of unknown APIs, those that are probably of another protocol, responses without their
        requests, headers that a gap cuts, and what is behind a gap. Bare SASL tokens are read as
        they are."""
        request, response = exchange.request, exchange.response
        unknown: Unread | None = None
        if request is not None and not (request.sasl or self._knows(exchange)):
            unknown = "missing" if len(request.raw) < REQUEST_PREFIX else "unknown-api"
        elif not exchange.is_decoded:
            unknown = "malformed"
        if request is not None:
            yield _unread_in(request, unknown)
        if response is not None:
            if request is None and not response.sasl:
                unknown = "missing" if len(response.raw) < RESPONSE_PREFIX else "unmatched"
            yield _unread_in(response, unknown)


def _unread_in(frame: Frame, unknown: Unread | None) -> tuple[Unread, int]:
    present = frame.size - frame.missing
    if unknown is not None:
        return unknown, present
    return "missing", present - frame.read_size if frame.size else 0
