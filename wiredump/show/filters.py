"""Which items to show. The cheap conditions are tested first: most items are never decoded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from kproto.dialects import Dialect, dialect
from kproto.errors import UnknownNameError
from kproto.journal import squash
from wiredump.model import Anomaly
from wiredump.show.exchange_view import ExchangeView

__all__ = ["Filters", "Moment", "api_keys", "moment"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """Nanoseconds since the epoch or, if ``relative``, since the first item."""

    ns: int
    relative: bool

    def after(self, start_ns: int) -> int:
        return self.ns + start_ns if self.relative else self.ns


@dataclass(frozen=True, kw_only=True)
class Filters:
    """An item is shown if it passes every filter that is set. Anomalies have neither an API nor a
    latency, so filters by those exclude them; ``errors`` includes them."""

    api_keys: frozenset[int] = frozenset()
    errors: bool = False
    client_id: str | None = None
    software: str | None = None
    connections: frozenset[int] = frozenset()
    min_latency_ns: int = 0
    since: Moment | None = None
    until: Moment | None = None
    grep: str = ""

    def passes(self, view: ExchangeView, start_ns: int) -> bool:
        exchange = view.exchange
        return (
            (not self.api_keys or exchange.api_key in self.api_keys)
            and (self.client_id is None or exchange.client_id == self.client_id)
            and self._is_software(exchange.connection if exchange.request is None else exchange)
            and (not self.connections or exchange.connection.number in self.connections)
            and (not self.min_latency_ns or (exchange.latency_ns or 0) >= self.min_latency_ns)
            and self._in_time(view.timestamp_ns, start_ns)
            and (not self.errors or view.failed)
            and (not self.grep or any(self.grep in text for text in view.texts))
        )

    def passes_anomaly(self, anomaly: Anomaly, start_ns: int) -> bool:
        connection = anomaly.connection
        if self.api_keys or self.min_latency_ns:
            return False
        about = connection is not None
        if (self.connections or self.client_id is not None or self.software) and not about:
            return False
        if connection is not None:
            if self.connections and connection.number not in self.connections:
                return False
            if self.client_id is not None and connection.client_id != self.client_id:
                return False
            if not self._is_software(connection):
                return False
        return self._in_time(anomaly.timestamp_ns, start_ns) and self.grep in anomaly.reason

    def _is_software(self, speaker: object) -> bool:
        if self.software is None:
            return True
        software = getattr(speaker, "software", None)
        return software is not None and self.software in (software.name, str(software))

    def _in_time(self, timestamp_ns: int, start_ns: int) -> bool:
        return (self.since is None or timestamp_ns >= self.since.after(start_ns)) and (
            self.until is None or timestamp_ns <= self.until.after(start_ns)
        )


def api_keys(wanted: str, codec: Dialect | None = None) -> frozenset[int]:
    """Return the API keys of a name, in any of its spellings, or of a number.

    Raises UnknownNameError.
    """
    if re.fullmatch(r"-?\d+", wanted):
        return frozenset({int(wanted)})
    name = squash(wanted)
    codecs = [dialect(each) for each in ("kafka", "kip-240", "kip-183", "kip-455-old")]
    found = frozenset(
        key
        for each in (*codecs, *([codec] if codec is not None else []))
        for key, api in each.apis.items()
        if name == squash(api.request.MESSAGE_NAME)
    )
    if not found:
        raise UnknownNameError(f"unknown API {wanted!r}; use a key or a name such as Metadata")
    return found


def moment(text: str) -> Moment:
    """Parse seconds since the first item, or a date and time (in UTC unless it has a zone).

    Raises ValueError.
    """
    try:
        return Moment(round(float(text) * 10**9), True)
    except (ValueError, OverflowError):
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        problem = f"{text!r} is not a time; use seconds, or a form such as 2026-01-31T12:00:00"
        raise ValueError(problem) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return Moment((when - _EPOCH) // timedelta(microseconds=1) * 1000, False)
