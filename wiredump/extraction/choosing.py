"""Which of all connections: by its number, or by its client's id. Keeps the items of those that may
be the one, and of no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kproto.errors import KprotoError
from wiredump.model import Anomaly, Connection, Exchange, Item

__all__ = ["Choice", "NoConnectionError", "chosen"]

_NAMED: int = 8
"""Connections that an error names, at most."""


class NoConnectionError(KprotoError):
    """There is no such connection, or more than one."""


class Choice(NamedTuple):
    connection: Connection
    exchanges: list[Exchange]
    anomalies: list[Anomaly]


def chosen(
    items: Iterable[Item],
    connections: Mapping[int, Connection],
    *,
    number: int | None = None,
    client_id: str | None = None,
) -> Choice:
    """The connection of that number, or the only one on which that client id was heard; without
    either the only one there is. ``connections`` fills as ``items`` are taken.

    Raises NoConnectionError, which says which there are.
    """
    kept: dict[int, Choice] = {}
    exchanges: dict[int, int] = {}
    for item in items:
        connection = item.connection
        if connection is None:
            continue
        at = connection.number
        if isinstance(item, Exchange):
            exchanges[at] = exchanges.get(at, 0) + 1
        if number is not None and at != number:
            continue
        choice = kept.setdefault(at, Choice(connection, [], []))
        if isinstance(item, Exchange):
            choice.exchanges.append(item)
        else:
            choice.anomalies.append(item)
    found = [choice for choice in kept.values() if choice.exchanges]
    if number is None and client_id is not None:
        found = [choice for choice in found if _heard(choice, client_id)]
    if len(found) == 1:
        return found[0]
    wanted = _wanted(number, client_id)
    if found:
        numbers = [choice.connection for choice in found]
        raise NoConnectionError(f"{wanted}: there are {_list(numbers)}; choose one by its number")
    if number in connections:
        protocol = connections[number].protocol
        raise NoConnectionError(f"connection {number} ({protocol}) has no request to extract")
    there = [connections[each] for each in sorted(exchanges)]
    raise NoConnectionError(f"no {wanted}; there are {_list(there) if there else 'none'}")


def _heard(choice: Choice, client_id: str) -> bool:
    return any(exchange.client_id == client_id for exchange in choice.exchanges)


def _wanted(number: int | None, client_id: str | None) -> str:
    if number is not None:
        return f"connection {number}"
    return "connection" if client_id is None else f"connection of client id {client_id!r}"


def _list(connections: list[Connection]) -> str:
    named = ", ".join(
        f"{each.number} ({each.client_id or each.client})" for each in connections[:_NAMED]
    )
    more = len(connections) - _NAMED
    return f"{named} and {more} more up to {connections[-1].number}" if more > 0 else named
