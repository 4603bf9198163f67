"""The clients of the demo: what each is, what it can be asked, and what it is known to send.

Facts about released clients only, each from that release's own documentation or source. Which they
are and how each is installed is ``kspec``'s; what a cluster has to answer is ``demo.story``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kspec import catalog

__all__ = ["CLIENTS", "Client", "Guard", "client"]

METADATA, API_VERSIONS = 3, 18
ELECT_LEADERS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 43, 45, 46

Guard = Literal["raises", "drops", "sends"]
"""What a client with the replication-factor guard of KIP-860 does where the broker only speaks
version 0 of AlterPartitionReassignments: ``raises`` an UnsupportedVersionException and sends
nothing, as the KIP asks; ``drops`` the flag without a word; ``sends`` version 1 all the same."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client of the conformance suite's catalog, and what the demo knows of it.

    ``offers`` is the version of the first ApiVersions request it sends; ``highest`` the newest
    version it can write of each api key the demo looks at; ``lacks`` says, by step, why the client
    cannot be asked for it.
    """

    name: str
    offers: int
    highest: Mapping[int, int]
    guard: Guard | None = None
    misreads_guard: bool = False
    lacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def installed(self) -> catalog.Client:
        """What it is, and how it is had."""
        return catalog.client(self.name)

    @property
    def language(self) -> catalog.Language:
        return self.installed.language

    @property
    def release(self) -> str:
        return self.installed.release

    @property
    def toolchains(self) -> tuple[str, ...]:
        """What has to be on this machine; names as in ``kspec.runner.toolchains``."""
        return self.installed.toolchains

    @property
    def client_id(self) -> str:
        """What it calls itself to brokers: ``demo-platformatic``."""
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
        "java-admin",
        offers=5,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 1, LIST_REASSIGNMENTS: 0},
        guard="raises",
    ),
    Client(
        "java-admin-3.9",
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
    """The client of that name; KeyError otherwise."""
    return {each.name: each for each in CLIENTS}[name]
