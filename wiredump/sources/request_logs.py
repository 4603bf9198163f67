"""A broker's own request log to items: what ``kafka.request.logger`` writes at DEBUG, one JSON
object a line behind ``Completed request:`` (Kafka 2.8 and newer).

It works where the wire is TLS, and says who asked. It has bodies as JSON and no bytes: of records
the broker logs ``recordsSizeInBytes`` instead, sizes of frames are unknown, and what was asked at
the same moment has no order but the log's. Times are the log line's own, with the offset from UTC
that it says or else in the time zone the caller names, less what the request took. A request
without an answer (acks=0, or the connection was closed on it) has ``""`` or, since 4.0, ``null`` as
its response.

With KRaft a controller logs what its brokers forward to it (KIP-590): with the client's own header,
on the broker's connection, and without the client's software. Those are told as connections apart,
one for each client id on each of the broker's, for they are not what the broker itself says there.
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
"""What reading a line runs into that is not the broker's own: numbers without end and JSON nested
without end among them."""
_ENDS: Final = re.compile(r"(?P<broker>.+:\d+)-(?P<client>.+:\d+)-(?P<rest>[\d-]+)")


def time_zone(name: str) -> tzinfo:
    """By its name in IANA's list. Raises ValueError where this machine does not have it."""
    if name == "UTC":
        return UTC  # which is there also where no other zone is
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise ValueError(f"unknown time zone {name!r}; use a name such as Europe/Berlin") from None


class RequestLogItems:
    """Feed it lines in order. ``zone``: of those times in the log that do not say theirs.

    Lines that are not completed requests are passed over; one that is and cannot be read is an
    anomaly.
    """

    def __init__(self, *, capture: int = 0, first: int = 0, zone: tzinfo = UTC) -> None:
        self.connections: dict[int, Connection] = {}
        self._capture = capture
        self._first = first
        self._zone = zone
        self._by_name: dict[str, Connection] = {}
        self._counts: dict[int, int] = {}
        self._offset = 0
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode

    def read(self, lines: Iterable[str]) -> Iterator[Item]:
        """The items of a whole log."""
        for line in lines:
            yield from self.feed(line)

    def feed(self, line: str) -> list[Item]:
        """The item of one line, if it has one."""
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
        """Nanoseconds; 0 where the line has no time that can be told."""
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
        answer, asked = logged.get("response"), logged.get("request")
        response = self._frame("response", number, answer, now, place) if answer else None
        self._learn_software(connection, key, asked)
        answered_version = version
        if key == _API_VERSIONS and answer and answer.get("errorCode") == _UNSUPPORTED_VERSION:
            answered_version = 0  # as in any of its answers to a version that it lacks (KIP-511)
        return Exchange(
            connection,
            request=self._frame("request", number, asked, began, place),
            response=response,
            api_key=key,
            api_version=version,
            correlation_id=int(header["correlationId"]),
            client_id=header.get("clientId"),
            software=connection.software,
            response_version=answered_version if response is not None else None,
            expected=not (key == _PRODUCE and isinstance(asked, dict) and asked.get("acks") == 0),
        )

    def _learn_software(self, connection: Connection, key: int, asked: Any) -> None:
        """What ApiVersions itself says; the broker logs it from the next request on."""
        if key == _API_VERSIONS and isinstance(asked, dict) and asked.get("clientSoftwareName"):
            version = str(asked.get("clientSoftwareVersion") or "")
            connection.software = ClientSoftware(str(asked["clientSoftwareName"]), version)

    def _frame(self, direction: Direction, number: int, body: Any, now: int, place: Place) -> Frame:
        """``offset`` is the exchange's number on its connection: there are no bytes to count."""
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
