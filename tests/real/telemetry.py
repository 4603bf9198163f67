"""Metrics that clients push to a real broker with a receiver, and to the mock, by hand (KIP-714)::

    python -m tests.real.telemetry --release 4.4.0

Both get the same requests: subscriptions, pushes in every codec, and those that are refused. Every
field of the answers is compared, but for ids that the broker draws, and so is what
``TelemetryReceiver.java`` was given with what the mock keeps.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Final

from kproto.dialects import dialect
from kproto.messages import (
    ApiVersionsRequest,
    GetTelemetrySubscriptionsRequest,
    IncrementalAlterConfigsRequest,
    PushTelemetryRequest,
)
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
)
from kproto.records import Compression
from kproto.records.compression import compress
from mockbroker import MockCluster
from tests.mockbroker.wire import Wire
from tests.real.data.pairs import PROFILES
from tests.real.kafka import COMMON_CONFIGS, RealKafka
from tests.telemetry.protobuf import gauge, metrics_data

GOOD: Final = metrics_data(gauge("org.apache.kafka.x", 2.0), *(gauge(f"m{i}", i) for i in range(9)))
MOST_BYTES: Final = 2_000
CONFIGS: Final = {"telemetry.max.bytes": str(MOST_BYTES)}
PATIENCE: Final = 60.0
SOURCE: Final = Path(__file__).with_name("TelemetryReceiver.java")
CLIENT_METRICS: Final = 16


class TelemetryKafka(RealKafka):
    """One broker with the receiver."""

    def __init__(self, release: str, folder: Path) -> None:
        super().__init__(release, folder, zookeeper=False, broker_ids=(1,))
        classes = folder / "classes"
        subprocess.run(
            ["javac", "-nowarn", "-cp", self._class_path, "-d", str(classes), str(SOURCE)],
            check=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._class_path = os.pathsep.join([self._class_path, str(classes)])

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        return {
            **super()._kraft_configs(broker_id), **CONFIGS, "metric.reporters": "TelemetryReceiver"
        }  # fmt: skip

    def pushes(self) -> list[tuple[bool, bytes]]:
        """What the receiver was given: whether it was the last, and the metrics."""
        found = []
        for log in self._folder.glob("*.log"):
            for line in log.read_text("utf-8", "replace").splitlines():
                if line.startswith("pushed "):
                    _, last, _, data = (*line.split(" "), "")[:4]
                    found.append((last == "true", bytes.fromhex(data)))
        return found


class _Side:
    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.heard: list[tuple[str, Any]] = []

    async def ask(self, body: Any, version: int = 0) -> Any:
        """Ask on a connection of its own: brokers forget a client's instance with the connection,
        and the next one begins anew."""
        wire = Wire(*await asyncio.open_connection(*self._address), dialect("kafka"))
        try:
            return await wire.ask(body, version)
        finally:
            wire.writer.close()

    async def alter(self, name: str, **values: str) -> None:
        configs = [
            AlterableConfig(name=each.replace("_", "."), value=value)
            for each, value in values.items()
        ]
        resource = AlterConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configs=configs
        )
        answer = await self.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        (row,) = answer.responses
        self.heard.append((f"alter {name} {values}", (row.error_code, row.error_message)))

    async def converse(self, what: str, number: int, *bodies: Any) -> None:
        """Let one instance of a client send requests, all on one connection."""
        wire = Wire(*await asyncio.open_connection(*self._address), dialect("kafka"))
        instance = uuid.UUID(int=(7 << 64) + number)
        subscription = 0
        try:
            for place, body in enumerate(bodies):
                if hasattr(body, "client_instance_id") and body.client_instance_id is None:
                    body.client_instance_id = instance
                if isinstance(body, PushTelemetryRequest):
                    body.subscription_id += subscription
                answer = await wire.ask(body, 0)
                if isinstance(body, GetTelemetrySubscriptionsRequest):
                    subscription = answer.subscription_id
                self.heard.append((f"{what}, {place}", answer))
        finally:
            wire.writer.close()

    async def until_subscribed(self, *metrics: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            body = GetTelemetrySubscriptionsRequest(client_instance_id=uuid.uuid4())
            answer = await self.ask(body)
            if set(answer.requested_metrics) == set(metrics):
                return
            assert time.monotonic() < deadline, answer
            await asyncio.sleep(0.05)


def get() -> Any:
    """Of the conversation's instance."""
    found: Any = GetTelemetrySubscriptionsRequest()
    found.client_instance_id = None
    return found


def push(metrics: bytes = GOOD, *, other: int = 0, **members: Any) -> Any:
    """A push with the subscription's id, to which ``other`` is added."""
    found: Any = PushTelemetryRequest(subscription_id=other, metrics=metrics, **members)
    found.client_instance_id = None
    return found


def zero(body: Any) -> Any:
    body.client_instance_id = uuid.UUID(int=0)
    return body


async def played(address: tuple[str, int]) -> list[tuple[str, Any]]:
    side = _Side(address)
    listed = await side.ask(ApiVersionsRequest())
    rows = [(r.api_key, r.min_version, r.max_version) for r in listed.api_keys]
    side.heard.append(("versions", [row for row in rows if row[0] in (71, 72)]))
    await side.converse("no subscription", 1, get(), push())
    await side.alter("s", metrics="org.apache,b", interval_ms="60000")
    await side.alter("other", metrics="c", match="client_id=nobody")
    await side.until_subscribed("org.apache", "b")
    await side.converse("subscription", 2, get(), get())
    for codec in Compression:
        number = 10 + codec.value
        await side.converse(
            f"push {codec.name}", number, get(),
            push(compress(codec, GOOD), compression_type=codec.value),
        )  # fmt: skip
        await side.converse(
            f"too large once read {codec.name}", 20 + codec.value, get(),
            push(compress(codec, GOOD * 20), compression_type=codec.value),
        )  # fmt: skip
        await side.converse(
            f"damaged {codec.name}", 30 + codec.value, get(),
            push(b"\xff" * 20, compression_type=codec.value),
        )  # fmt: skip
    await side.converse("twice", 40, get(), push(), push())
    await side.converse("again after a refusal", 41, get(), push(other=1), get(), push())
    await side.converse("unknown codec", 42, get(), push(compression_type=9), get())
    await side.converse("too large", 43, get(), push(b"x" * (MOST_BYTES + 1)), get())
    await side.converse("largest", 44, get(), push(b"x" * MOST_BYTES))
    await side.converse("empty", 45, get(), push(b""))
    await side.converse("last", 46, get(), push(terminating=True), push(), get())
    await side.converse("last after one", 47, get(), push(), push(terminating=True))
    await side.converse("no subscription known", 48, push())
    await side.converse("reserved instance", 49, zero(push()))
    await side.alter("s", metrics="*")
    await side.until_subscribed("*")
    await side.converse("all metrics", 50, get(), push())
    await side.alter("s", interval_ms="99")
    await side.alter("s", nonsense="1")
    return side.heard


async def _main(release: str) -> int:
    async with MockCluster(
        1,
        profile=PROFILES[release],
        broker_configs={**COMMON_CONFIGS, **CONFIGS},
        client_telemetry=True,
    ) as mock:
        host, port = mock.addresses[1].rsplit(":", 1)
        ours = await played((host, int(port)))
        kept = [(each.terminating, each.data) for each in mock.telemetry().pushes]
    with tempfile.TemporaryDirectory() as folder, TelemetryKafka(release, Path(folder)) as kafka:
        theirs = await played(("127.0.0.1", kafka.ports[1]))
        received = kafka.pushes()
    assert len(ours) == len(theirs)
    differing = [(one, two) for one, two in zip(theirs, ours, strict=True) if one != two]
    for one, two in differing:
        print(f"Kafka {one}\nmock  {two}")
    print(f"{release}: {len(ours)} answers, {len(differing)} differ")
    same = received == kept
    print(f"{len(received)} pushes received, {len(kept)} kept, {'alike' if same else 'NOT alike'}")
    return 1 if differing or not same else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.telemetry")
    parser.add_argument("--release", choices=sorted(PROFILES), required=True)
    return asyncio.run(_main(parser.parse_args().release))


if __name__ == "__main__":
    sys.exit(main())
