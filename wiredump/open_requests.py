"""Requests of a connection that have no response yet, oldest first.

There are two implementations of one interface: this one, and ``native/open_requests.c`` where the
extension is in use. The extension adds requests that it reads in bulk without an object for each;
``make`` makes the exchange of such a request when it is first needed.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, cast

from wiredump.model import Connection, Exchange, Frame, Place
from wiredump.native import quick

__all__ = ["MOST_HALVES", "OpenRequests", "UnkeptBytes", "open_requests"]

MOST_HALVES: Final = 32


class OpenRequests:
    """Iterates over correlation ids. ``size`` counts the bytes of the requests, ``pushed`` how many
    there have been."""

    def __init__(self) -> None:
        self.size = 0
        self.pushed = 0
        self._by_number: OrderedDict[int, Exchange] = OrderedDict()
        self._by_id: dict[int, deque[int]] = {}
        self._halves: set[int] = set()

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_id)

    def __contains__(self, correlation_id: object) -> bool:
        return correlation_id in self._by_id

    def push(self, exchange: Exchange) -> None:
        """Add a request."""
        self.pushed += 1
        self._by_number[self.pushed] = exchange
        self._by_id.setdefault(exchange.correlation_id, deque()).append(self.pushed)
        if len(self._halves) <= MOST_HALVES:
            self._halves.add(exchange.correlation_id >> 16 & 0xFFFF)
        self.size += _size(exchange)

    def oldest(self, correlation_id: int) -> Exchange | None:
        """Return the oldest request with this id."""
        numbers = self._by_id.get(correlation_id)
        return self._by_number[numbers[0]] if numbers else None

    def take(self, correlation_id: int) -> tuple[Exchange, bool] | None:
        """Remove the oldest request with this id. Returns it, and whether it was the oldest of
        all."""
        numbers = self._by_id.get(correlation_id)
        if not numbers:
            return None
        number = numbers.popleft()
        if not numbers:
            del self._by_id[correlation_id]
        in_order = number == next(iter(self._by_number))
        exchange = self._by_number.pop(number)
        self.size -= _size(exchange)
        if not self._by_number:
            self._halves.clear()
        return exchange, in_order

    def take_oldest(self) -> Exchange:
        """Remove the oldest request of all."""
        oldest = next(iter(self._by_number.values()))
        self.take(oldest.correlation_id)
        return oldest

    @property
    def halves(self) -> frozenset[int]:
        """The upper halves of the correlation ids, and perhaps of earlier ones. There are at most
        ``MOST_HALVES``; one more means that there are too many to list."""
        return frozenset(self._halves)

    def make_all(self) -> None:
        """Make the exchanges that were not needed yet, from the present state of the connection."""

    def all(self) -> list[Exchange]:
        """Return all requests."""
        return list(self._by_number.values())


def _size(exchange: Exchange) -> int:
    assert exchange.request is not None
    return exchange.request.read_size


def open_requests(
    connection: Connection, dialect: str, exchanges: Iterable[Exchange] = ()
) -> OpenRequests:
    """Return those of a connection. ``dialect`` is that of requests which the extension reads."""
    requests, module = OpenRequests(), quick()
    if module is not None:
        requests = module.OpenRequests(partial(_exchange, connection, dialect))
    for exchange in exchanges:
        requests.push(exchange)
    return requests


class UnkeptBytes:
    """Replaces the bytes of a frame of which only the number is needed."""

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


def _exchange(
    connection: Connection, dialect: str, offset: int, size: int, first_ns: int, last_ns: int,
    capture: int, packet: int, key: int, version: int, correlation_id: int, client_id: str | None,
    raw: bytes | None,
) -> Exchange:  # fmt: skip
    """Make the exchange of a request that was read in bulk, perhaps without its bytes."""
    if raw is None:
        raw = cast(bytes, UnkeptBytes(size))
    frame = Frame("request", offset, size, raw, 0, first_ns, last_ns, Place(capture, packet))
    return Exchange(
        connection, request=frame, api_key=key, api_version=version,
        correlation_id=correlation_id, client_id=client_id, software=connection.software,
        dialect=dialect,
    )  # fmt: skip
