"""Which metrics a client is to push, and how often: the subscriptions that match it (KIP-714)."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Mapping

import msgspec

from kproto.records.crc import crc32c
from mockbroker.simulation.configs.client_metrics import (
    ALL_METRICS,
    DEFAULT_INTERVAL_MS,
    INTERVAL,
    MATCH,
    METRICS,
    MatchPattern,
    match_patterns,
)
from mockbroker.simulation.configs.values import items_of
from mockbroker.simulation.state.java_maps import hash_order

__all__ = ["ClientFacts", "Subscription", "requested", "shown_id", "subscription_id"]


class ClientFacts(msgspec.Struct, frozen=True):
    """What a broker knows of a client instance when it first hears of it."""

    instance_id: uuid.UUID
    client_id: str | None
    software_name: str | None
    software_version: str | None
    address: str
    port: str

    def value(self, name: str) -> str | None:
        """What the pattern of this name is about. Ids are shown as Kafka shows them."""
        return {
            "client_instance_id": shown_id(self.instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.address,
            "client_source_port": self.port,
        }[name]


class Subscription(msgspec.Struct, frozen=True):
    """A subscription of the cluster."""

    name: str
    metrics: tuple[str, ...]
    interval_ms: int
    match: tuple[MatchPattern, ...]

    @classmethod
    def of(cls, name: str, configs: Mapping[str, str]) -> Subscription:
        """The subscription with these configs, which have been checked."""
        return cls(
            name,
            tuple(dict.fromkeys(items_of(configs.get(METRICS, "")))),
            int(configs.get(INTERVAL, DEFAULT_INTERVAL_MS)),
            tuple(match_patterns(configs.get(MATCH, ""))),
        )

    def matches(self, client: ClientFacts) -> bool:
        """Whether every pattern matches the whole of what it is about."""
        return all(
            (value := client.value(name)) is not None and pattern.fullmatch(value) is not None
            for name, pattern in self.match
        )


def requested(
    subscriptions: Iterable[Subscription], client: ClientFacts
) -> tuple[tuple[str, ...], int]:
    """Return the prefixes of the metrics that this client is to push, in the order in which Kafka
    lists them, and the push interval in milliseconds. A prefix "*" stands for all."""
    matching = [each for each in subscriptions if each.matches(client)]
    metrics = [name for each in matching for name in hash_order(each.metrics)]
    if ALL_METRICS in metrics:
        metrics = [ALL_METRICS]
    interval_ms = min([DEFAULT_INTERVAL_MS, *(each.interval_ms for each in matching)])
    return tuple(hash_order(metrics)), interval_ms


def subscription_id(metrics: Iterable[str], interval_ms: int, instance_id: uuid.UUID) -> int:
    """Return the id of what a client is to push, a signed 32-bit number: CRC-32C of the metrics and
    the interval as Java prints them, XOR the hash of the client instance id."""
    crc = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    folded = (instance_id.int >> 64) ^ (instance_id.int & 0xFFFF_FFFF_FFFF_FFFF)
    value = crc ^ (folded >> 32) ^ (folded & 0xFFFF_FFFF)
    return value - (1 << 32) if value >> 31 else value


def shown_id(instance_id: uuid.UUID) -> str:
    """Return an id in Kafka's form: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(instance_id.bytes).decode().rstrip("=")
