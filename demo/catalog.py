"""The clients of the demo: what each is, what it can be asked, and what it is known to send.

Facts about released clients only, each from that release's own documentation or source. What a
cluster has to answer is ``demo.story``'s; how a client is installed is ``demo.install``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["CLIENTS", "Client", "Guard", "client"]

METADATA, API_VERSIONS = 3, 18
ELECT_LEADERS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 43, 45, 46

Language = Literal["python", "node", "java", "go"]

Guard = Literal["raises", "drops", "sends"]
"""What a client with the replication-factor guard of KIP-860 does where the broker only speaks
version 0 of AlterPartitionReassignments: ``raises`` an UnsupportedVersionException and sends
nothing, as the KIP asks; ``drops`` the flag without a word; ``sends`` version 1 all the same."""


@dataclass(frozen=True, slots=True)
class Client:
    """One release of one client library.

    ``offers`` is the version of the first ApiVersions request it sends; ``highest`` the newest
    version it can write of each api key the demo looks at; ``lacks`` says, by step, why the client
    cannot be asked for it. ``variant`` tells apart two drivers of one language.
    """

    name: str
    language: Language
    driver: str
    release: str
    offers: int
    highest: Mapping[int, int]
    guard: Guard | None = None
    misreads_guard: bool = False
    oldest_node: tuple[int, int] | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def toolchains(self) -> tuple[str, ...]:
        """What has to be on this machine; names as in ``scripts.toolchains``."""
        return {
            "python": (),
            "node": ("node", "npm"),
            "java": ("java", "maven"),
            "go": ("go",),
        }[self.language]


_NO_GUARD = {"guard": "has no such option"}
_NO_CALL = "has no public call for it"

CLIENTS: tuple[Client, ...] = (
    Client(
        "kafka-python",
        "python",
        "kafka_python",
        "3.0.12",
        offers=4,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 1, LIST_REASSIGNMENTS: 0},
        lacks=_NO_GUARD,
    ),
    Client(
        "confluent-kafka",
        "python",
        "confluent",
        "2.16.1",
        offers=3,
        highest={ELECT_LEADERS: 2},
        lacks=dict.fromkeys(("guard", "reassign", "list", "complete", "cancel"), _NO_CALL),
    ),
    Client(
        "aiokafka",
        "python",
        "aiokafka",
        "0.14.0",
        offers=0,
        highest={METADATA: 5},
        lacks=dict.fromkeys(("guard", "reassign", "list", "complete", "cancel", "elect"), _NO_CALL),
    ),
    Client(
        "kafkajs",
        "node",
        "kafkajs",
        "2.2.4",
        offers=2,
        highest={METADATA: 6, ALTER_REASSIGNMENTS: 0, LIST_REASSIGNMENTS: 0},
        lacks={**_NO_GUARD, "cancel": "refuses null replicas", "elect": _NO_CALL},
    ),
    Client(
        "@platformatic/kafka",
        "node",
        "platformatic",
        "1.35.0",
        offers=3,
        highest={METADATA: 12, ALTER_REASSIGNMENTS: 0, LIST_REASSIGNMENTS: 0},
        guard="sends",
        misreads_guard=True,
        oldest_node=(20, 19),
        lacks={"elect": _NO_CALL},
    ),
    Client(
        "java-admin",
        "java",
        "AdminDriver",
        "4.4.0",
        offers=5,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 1, LIST_REASSIGNMENTS: 0},
        guard="raises",
    ),
    Client(
        "java-admin-3.9",
        "java",
        "AdminDriver",
        "3.9.2",
        offers=4,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 0, LIST_REASSIGNMENTS: 0},
        lacks={"guard": "the option came with 4.1"},
    ),
    Client(
        "franz-go",
        "go",
        "franz",
        "v1.22.2",
        offers=5,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 1, LIST_REASSIGNMENTS: 0},
        guard="drops",
    ),
    Client(
        "sarama",
        "go",
        "sarama",
        "v1.61.1",
        offers=4,
        highest={ELECT_LEADERS: 2, ALTER_REASSIGNMENTS: 0, LIST_REASSIGNMENTS: 0},
        lacks=_NO_GUARD,
    ),
)


def client(name: str) -> Client:
    """The client of that name; KeyError otherwise."""
    return {each.name: each for each in CLIENTS}[name]
