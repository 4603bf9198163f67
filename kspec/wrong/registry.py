"""The registry of misbehaviours. Modules of this package define and register them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kspec.wrong.client import Client
from kspec.wrong.consumer import Consumer
from kspec.wrong.consumer_group_member import ConsumerGroupMember
from kspec.wrong.link import Link
from kspec.wrong.membership import Membership
from kspec.wrong.processor import Processor
from kspec.wrong.producer import Producer
from kspec.wrong.streams_group_member import StreamsGroupMember
from kspec.wrong.telemetry import Telemetry
from kspec.wrong.topics import Topics
from kspec.wrong.transactional_producer import TransactionalProducer

__all__ = ["MISBEHAVIOURS", "Misbehaviour", "misbehaves", "wrong_client"]

T = TypeVar(
    "T",
    type[Client],
    type[Link],
    type[Producer],
    type[TransactionalProducer],
    type[Consumer],
    type[Membership],
    type[Telemetry],
    type[Processor],
    type[Topics],
)


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """``about`` states in one sentence which rule is broken."""

    name: str
    about: str
    client: type[Client]


_PARTS: Final[Mapping[str, type]] = {
    "link": Link,
    "transactional": TransactionalProducer,
    "producer": Producer,
    "consumer": Consumer,
    "consumer_group_member": ConsumerGroupMember,
    "streams_group_member": StreamsGroupMember,
    "membership": Membership,
    "telemetry": Telemetry,
    "processor": Processor,
}
"""The first base class that fits decides: a transactional producer is a producer, too, and a
member of a consumer group or streams group a member."""

MISBEHAVIOURS: Final[dict[str, Misbehaviour]] = {}


def misbehaves(name: str) -> Callable[[T], T]:
    """Register a ``Client``, or a ``Link``, ``Producer``, ``Consumer``, ``Membership``,
    ``Processor`` or ``Topics`` that an otherwise correct client uses.

    The first line of its docstring is its description in ``kspec misbehaviours``.
    """

    def keep(wrong: T) -> T:
        assert name not in MISBEHAVIOURS, name
        about = (wrong.__doc__ or "").strip().split("\n\n")[0]
        part = next((part for part, base in _PARTS.items() if issubclass(wrong, base)), None)
        client: Any = wrong
        if part is not None:
            client = type(wrong.__name__, (Client,), {part: wrong})
        if issubclass(wrong, Topics):
            parts = {
                name: type(base.__name__, (base,), {"metadata": wrong})
                for name, base in _PARTS.items()
                if hasattr(base, "metadata")
            }
            client = type(wrong.__name__, (Client,), parts)
        client.name = f"wrong:{name}"
        MISBEHAVIOURS[name] = Misbehaviour(name, " ".join(about.split()), client)
        return wrong

    return keep


def wrong_client(name: str) -> Client:
    """Return a new client with that misbehaviour, or the correct one for "". Raises KeyError."""
    return MISBEHAVIOURS[name].client() if name else Client()
