"""The clients of the demo: the calls that each one has, and the versions that it is known to send.

This module has only facts about released clients, each from that release's documentation or source.
``kspec`` knows how to install them; ``demo.story`` knows what a cluster has to answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kspec import client_catalog

__all__ = ["CLIENTS", "Client", "Guard", "client"]

METADATA, API_VERSIONS = 3, 18
ELECT_LEADERS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 43, 45, 46

Guard = Literal["raises", "drops", "sends"]
"""How a client with the replication-factor guard of KIP-860 behaves if the broker supports only
version 0 of AlterPartitionReassignments: ``raises`` an UnsupportedVersionException without sending
anything, as the KIP requires; ``drops`` the flag silently; or ``sends`` version 1 nevertheless."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client of the conformance suite's catalog, and what the demo knows about it.

    ``offers`` is the version of the first ApiVersions request that it sends; ``highest`` has the
    newest version that it can write of each API key in the demo; ``lacks`` has the reason, by step,
    why the client cannot make the call.
    """

    name: str
    offers: int
    highest: Mapping[int, int]
    guard: Guard | None = None
    misreads_guard: bool = False
    lacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def installed(self) -> client_catalog.Client:
        """How the catalog of ``kspec`` describes and installs it."""
        return client_catalog.client(self.name)

    @property
    def language(self) -> client_catalog.Language:
        return self.installed.language

    @property
    def release(self) -> str:
        return self.installed.release

    @property
    def toolchains(self) -> tuple[str, ...]:
        """The toolchains that it needs, named as in ``kspec.runner.toolchains``."""
        return self.installed.toolchains

    @property
    def client_id(self) -> str:
        """The client id that it sends to brokers: ``demo-platformatic``."""
        return "demo-" + self.name.strip("@").removesuffix("/kafka")


_NO_GUARD = {"guard": "has no such option"}
_NO_CALL = "has no public call for it"

CLIENTS: tuple[Client, ...] = (
    Client(
        "kafka-python",
        offers=4,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 1, LIST_REASSIGNMENTS: 0},
        lacks=_NO_GUARD,
    ),
    Client(
        "confluent-kafka",
        offers=3,
        highest={ELECT_LEADERS: 2},
        lacks=dict.fromkeys(("guard", "reassign", "list", "complete", "cancel"), _NO_CALL),
    ),
    Client(
        "aiokafka",
        offers=0,
        highest={METADATA: 5},
        lacks=dict.fromkeys(("guard", "reassign", "list", "complete", "cancel", "elect"), _NO_CALL),
    ),
    Client(
        "kafkajs",
        offers=2,
        highest={METADATA: 6, ALTER_REASSIGNMENTS: 0, LIST_REASSIGNMENTS: 0},
        lacks={**_NO_GUARD, "cancel": "refuses null replicas", "elect": _NO_CALL},
    ),
    Client(
        "@platformatic/kafka",
        offers=3,
        highest={METADATA: 12, ALTER_REASSIGNMENTS: 0, LIST_REASSIGNMENTS: 0},
        guard="sends",
        misreads_guard=True,
        lacks={"elect": _NO_CALL},
    ),
    Client(
        "kafka-clients",
        offers=5,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 1, LIST_REASSIGNMENTS: 0},
        guard="raises",
    ),
    Client(
        "kafka-clients-3.9",
        offers=4,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 0, LIST_REASSIGNMENTS: 0},
        lacks={"guard": "the option came with 4.1"},
    ),
    Client(
        "franz-go",
        offers=5,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 1, LIST_REASSIGNMENTS: 0},
        guard="drops",
    ),
    Client(
        "sarama",
        offers=4,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 0, LIST_REASSIGNMENTS: 0},
        lacks=_NO_GUARD,
    ),
)


def client(name: str) -> Client:
    """Return the client with that name. Raises KeyError."""
    return {each.name: each for each in CLIENTS}[name]
