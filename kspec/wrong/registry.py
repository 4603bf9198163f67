"""The misbehaviours by name. A module of this package defines each and registers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from kspec.wrong.client import Client
from kspec.wrong.link import Link

__all__ = ["MISBEHAVIOURS", "Misbehaviour", "misbehaves", "wrong_client"]

T = TypeVar("T", type[Client], type[Link])


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """``about`` says in a sentence which rule is broken."""

    name: str
    about: str
    client: type[Client]


MISBEHAVIOURS: Final[dict[str, Misbehaviour]] = {}


def misbehaves(name: str) -> Callable[[T], T]:
    """Register a ``Client``, or a ``Link`` to be used by a client right in all else. The first line
    of its docstring is what ``kspec misbehaviours`` says about it."""

    def keep(wrong: T) -> T:
        assert name not in MISBEHAVIOURS, name
        about = (wrong.__doc__ or "").strip().split("\n\n")[0]
        client: type[Client]
        if issubclass(wrong, Link):
            client = type(wrong.__name__, (Client,), {"link": wrong, "name": f"wrong:{name}"})
        else:
            client = wrong
            client.name = f"wrong:{name}"
        MISBEHAVIOURS[name] = Misbehaviour(name, " ".join(about.split()), client)
        return wrong

    return keep


def wrong_client(name: str) -> Client:
    """A new client that misbehaves so, or for "" the correct one. Raises KeyError."""
    return MISBEHAVIOURS[name].client() if name else Client()
