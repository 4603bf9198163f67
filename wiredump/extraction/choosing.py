"""Select connections by number or by client id. Only the items of connections that may be selected
are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kproto.errors import KprotoError
from wiredump.model import Anomaly, Connection, Exchange, Item

__all__ = ["Choice", "NoConnectionError", "chosen"]

_NAMED: int = 8
"""The most connections that an error lists."""


class NoConnectionError(KprotoError):
    """There is no such connection, or more than one."""


class Choice(NamedTuple):
    """A chosen connection with all its exchanges and anomalies."""

    connection: Connection
    exchanges: list[Exchange]
    anomalies: list[Anomaly]


def chosen(
    items: Iterable[Item], *, numbers: Collection[int] = (), client_id: str | None = None
) -> list[Choice]:
    """Return the connections with these numbers, or all with that client id; without either, the
    only connection there is.

    Raises NoConnectionError, whose message lists the connections.
    """
    kept: dict[int, Choice] = {}
    connections: dict[int, Connection] = {}
    there: set[int] = set()
    for item in items:
        connection = item.connection
        if connection is None:
            continue
        at = connection.number
        connections[at] = connection
        if isinstance(item, Exchange):
            there.add(at)
        if numbers and at not in numbers:
            continue
        if client_id is not None and at not in kept and _is_of_another(item, client_id):
            continue
        choice = kept.setdefault(at, Choice(connection, [], []))
        if isinstance(item, Exchange):
            choice.exchanges.append(item)
        else:
            choice.anomalies.append(item)
    found = [choice for _, choice in sorted(kept.items()) if choice.exchanges]
    all_there = [connections[at] for at in sorted(there)]
    if numbers:
        _check(numbers, there, connections, all_there)
    elif client_id is not None:
        found = [choice for choice in found if _has_client_id(choice, client_id)]
        if not found:
            wanted = f"connection of client id {client_id!r}"
            raise NoConnectionError(f"there is no {wanted}; there are {_list(all_there)}")
    elif len(found) != 1:
        problem = "choose by number or client id" if found else "nothing to extract"
        raise NoConnectionError(f"{problem}: there are {_list(all_there)}")
    return found


def _is_of_another(item: Item, client_id: str) -> bool:
    """Whether the connection has another client id. Connections rarely have two, so it is not
    kept."""
    return isinstance(item, Exchange) and item.client_id not in (client_id, None)


def _check(
    numbers: Collection[int],
    there: Collection[int],
    connections: Mapping[int, Connection],
    all_there: list[Connection],
) -> None:
    for number in sorted(numbers):
        if number in there:
            continue
        if number in connections:
            protocol = connections[number].protocol
            raise NoConnectionError(f"connection {number} ({protocol}) has nothing to extract")
        raise NoConnectionError(f"there is no connection {number}; there are {_list(all_there)}")


def _has_client_id(choice: Choice, client_id: str) -> bool:
    return any(exchange.client_id == client_id for exchange in choice.exchanges)


def _list(connections: list[Connection]) -> str:
    if not connections:
        return "none"
    named = ", ".join(
        f"{each.number} ({each.client_id or each.client})" for each in connections[:_NAMED]
    )
    more = len(connections) - _NAMED
    return f"{named} and {more} more up to {connections[-1].number}" if more > 0 else named
