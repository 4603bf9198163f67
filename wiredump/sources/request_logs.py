"""Turn a broker's request log into items: ``kafka.request.logger`` at DEBUG writes one JSON object
per line after ``Completed request:`` (Kafka 2.8 and newer).

This also works with TLS, and has the principal. There are bodies as JSON but no bytes: instead of
records the broker logs ``recordsSizeInBytes``, sizes of frames are unknown, and requests at the
same moment have only the order of the log. Times are those of the log lines, with their offset from
UTC or else in the caller's time zone, minus the time that the request took. A request without a
response (acks=0, or a connection closed meanwhile) has ``""`` or, since 4.0, ``null`` as its
response.

With KRaft a controller logs the requests that brokers forward (KIP-590): with the client's own
header, on the broker's connection, and without the client's software. These are shown as separate
connections, one for each client id on each of the broker's connections, since they are not the
broker's own requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from kproto.journal import ClientSoftware
from wiredump.model import Anomaly, Connection, Direction, Exchange, Frame, Item, Place

__all__ = ["MARK", "RequestLogItems", "time_zone"]

MARK: Final = "Completed request:"
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})(Z|[+-]\d\d:?\d\d)?(?!\d)"
)
_PRODUCE, _API_VERSIONS, _UNSUPPORTED_VERSION = 0, 18, 35
_NOT_AS_LOGGED: Final = (
    ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
    msgspec.DecodeError,
)  # fmt: skip
"""Errors of reading a line that is not a broker's own, such as numbers or nesting without limit."""
_ENDS: Final = re.compile(r"(?P<broker>.+:\d+)-(?P<client>.+:\d+)-(?P<rest>[\d-]+)")


def time_zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name. Raises ValueError if this machine does not have it."""
    if name == "UTC":
        return UTC  # available even without a time zone database
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise ValueError(f"unknown time zone {name!r}; use a name such as Europe/Berlin") from None


class RequestLogItems:
    """Takes lines in order. ``zone`` is the time zone of times without one. Lines that are not
    completed requests are skipped; a completed request that cannot be read is an anomaly.
    Connections are added to ``connections``, by number."""

    def __init__(
        self, *, capture: int = 0, first: int = 0, zone: tzinfo = UTC,
        connections: dict[int, Connection] | None = None,
    ) -> None:  # fmt: skip
        self.connections: dict[int, Connection] = {} if connections is None else connections
        self._capture = capture
        self._first = first
        self._zone = zone
        self._by_name: dict[str, Connection] = {}
        self._counts: dict[int, int] = {}
        self._offset = 0
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode

    def read(self, lines: Iterable[str]) -> Iterator[Item]:
        """Yield the items of a whole log."""
        for line in lines:
            yield from self.feed(line)

    def feed(self, line: str) -> list[Item]:
        """Return the item of a line, if it has one."""
        place = Place(self._capture, self._offset)
        self._offset += len(line.encode(errors="surrogateescape"))
        before, mark, rest = line.partition(MARK)
        if not mark:
            return []
        now = self._time(before)
        try:
            start = rest.index("{")
            logged = self._decode(rest[start : rest.rindex("}") + 1])
            return [self._exchange(logged, now, place)]
        except _NOT_AS_LOGGED as error:
            return [Anomaly("damaged", f"not a request as the broker logs it: {error}", place, now)]

    def _time(self, text: str) -> int:
        """Return nanoseconds; 0 if the line's time cannot be read."""
        found = _TIME.search(text)
        if found is None:
            return 0
        day, clock, milliseconds, offset = found.groups()
        try:
            moment = datetime.fromisoformat(f"{day}T{clock}{offset or ''}")
        except ValueError:
            return 0
        if offset is None:
            moment = moment.replace(tzinfo=self._zone)
        return int(moment.timestamp()) * 10**9 + int(milliseconds) * 10**6

    def _exchange(self, logged: dict[str, Any], now: int, place: Place) -> Exchange:
        header = logged["requestHeader"]
        key, version = int(header["requestApiKey"]), int(header["requestApiVersion"])
        began = now - int(float(logged.get("totalTimeMs", 0)) * 1e6)
        connection = self._connection(logged, began, place)
        if header.get("clientId") is not None:
            connection.client_id = header["clientId"]
        number = self._counts[connection.number] = self._counts.get(connection.number, -1) + 1
        answer, request = logged.get("response"), logged.get("request")
        response = self._frame("response", number, answer, now, place) if answer else None
        self._learn_software(connection, key, request)
        answered_version = version
        if key == _API_VERSIONS and answer and answer.get("errorCode") == _UNSUPPORTED_VERSION:
            answered_version = (
                0  # as in every response to a version that the broker lacks (KIP-511)
            )
        return Exchange(
            connection,
            request=self._frame("request", number, request, began, place),
            response=response,
            api_key=key,
            api_version=version,
            correlation_id=int(header["correlationId"]),
            client_id=header.get("clientId"),
            software=connection.software,
            response_version=answered_version if response is not None else None,
            expected=key != _PRODUCE or not isinstance(request, dict) or request.get("acks") != 0,
        )

    def _learn_software(self, connection: Connection, key: int, request: Any) -> None:
        """Take the software from ApiVersions itself; the broker logs it from the next request
        on."""
        if key == _API_VERSIONS and isinstance(request, dict) and request.get("clientSoftwareName"):
            version = str(request.get("clientSoftwareVersion") or "")
            connection.software = ClientSoftware(str(request["clientSoftwareName"]), version)

    def _frame(self, direction: Direction, number: int, body: Any, now: int, place: Place) -> Frame:
        """Make a frame. ``offset`` is the exchange's number on its connection, since there are no
        bytes to count."""
        return Frame(direction, number, 0, b"", 0, now, now, place, json=body)

    def _connection(self, logged: dict[str, Any], now: int, place: Place) -> Connection:
        name = str(logged["connection"])
        ends = _ENDS.fullmatch(name)
        if logged.get("isForwarded") is True:
            name += f" for {logged['requestHeader'].get('clientId')}"
        connection = self._by_name.get(name)
        if connection is None:
            connection = Connection(
                self._first + len(self._by_name),
                ends["client"] if ends else name,
                ends["broker"] if ends else str(logged.get("listener", "")),
                now,
                protocol="kafka",
                place=place,
            )
            self._by_name[name] = self.connections[connection.number] = connection
        information = logged.get("clientInformation") or {}
        software = information.get("softwareName") or ""
        if software not in ("", "unknown"):
            version = str(information.get("softwareVersion") or "")
            connection.software = ClientSoftware(software, version)
        connection.principal = str(logged.get("principal") or connection.principal)
        return connection
