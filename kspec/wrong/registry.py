"""The registry of misbehaviours. Modules of this package define and register them."""

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
    """``about`` states in one sentence which rule is broken."""

    name: str
    about: str
    client: type[Client]


MISBEHAVIOURS: Final[dict[str, Misbehaviour]] = {}


def misbehaves(name: str) -> Callable[[T], T]:
    """Register a ``Client``, or a ``Link`` that an otherwise correct client uses.

    The first line of its docstring is its description in ``kspec misbehaviours``.
    """

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
    """Return a new client with that misbehaviour, or the correct one for "". Raises KeyError."""
    return MISBEHAVIOURS[name].client() if name else Client()
