"""Clusters that a suite runs on: ``mock:PROFILE``, ``kafka:RELEASE`` and ``nothing``.

The mock runs as ``mockbroker serve`` in a process of its own, as a user would start it. Real Kafka
is started from Maven's jars. At the address of ``nothing`` no broker listens: a test that passes
there asks none.
"""

import contextlib
import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.real.kafka import RealKafka
from tests.suites.model import ClusterNeeds
from tests.support.ports import free_ports

__all__ = [
    "COUNTERPARTS",
    "MOCK",
    "KafkaTarget",
    "MockTarget",
    "NoTarget",
    "ProxiedTarget",
    "Target",
    "served",
    "target_of",
]

ROOT: Final = Path(__file__).resolve().parents[2]
STOP_SECONDS: Final = 30.0

MOCK: Final = "mock:kafka-4.4"
"""The target of ``make suites`` without arguments."""

COUNTERPARTS: Final = {"mock:kafka-4.4": "kafka:4.4.0", "mock:kafka-3.9": "kafka:3.9.2"}
"""The real release that each profile of the mock is compared with."""

_ONE_COPY: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""What Kafka's own ``server.properties`` sets for a cluster of one broker."""


_AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
}


def _rules(needs: ClusterNeeds) -> dict[str, str]:
    """The configs of real brokers that keep access rules."""
    if not needs.authorizer:
        return {}
    if needs.open_resources:
        return {**_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    return {**_AUTHORIZER, "super.users": "User:ANONYMOUS"}


class Target(ABC):
    """A kind of cluster. ``name`` is what ``--on`` takes."""

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version
        """The Kafka release, such as "4.4.0"."""

    @abstractmethod
    def start(self, needs: ClusterNeeds, folder: Path) -> AbstractContextManager[str]:
        """Run a cluster; the value is its bootstrap addresses. ``folder`` takes files and logs."""


class MockTarget(Target):
    def __init__(self, name: str, profile: str) -> None:
        super().__init__(name, f"{profile.removeprefix('kafka-')}.0")
        self.profile = profile

    def command(self, needs: ClusterNeeds) -> list[str]:
        """The command that serves such a cluster."""
        configs = {"auto.create.topics.enable": "true", **_ONE_COPY, **needs.configs}
        command = [sys.executable, "-m", "mockbroker", "serve", "--exit-with-parent"]
        command += [f"--profile={self.profile}", f"--brokers={needs.ids[0]}-{needs.ids[-1]}"]
        command.append("--auto-progress=100ms")  # real replicas catch up by themselves
        command += [f"--broker-config={name}={value}" for name, value in configs.items()]
        if needs.authorizer:
            command.append("--authorizer")
            command.append(
                "--allow-everyone-if-no-acl-found"
                if needs.open_resources
                else "--super-user=User:ANONYMOUS"
            )
        if needs.port:
            command.append(f"--listen=127.0.0.1:{needs.port}")
        if needs.advertised is not None:
            command.append(f"--advertise={needs.advertised[0]}:{needs.advertised[1]}")
        return command

    @contextlib.contextmanager
    def start(self, needs: ClusterNeeds, folder: Path) -> Iterator[str]:
        with served(self.command(needs), folder / "mockbroker.simulation.log") as ready:
            yield ready["bootstrap"]


@contextlib.contextmanager
def served(command: Sequence[str], log_file: Path) -> Iterator[dict[str, Any]]:
    """Run ``mockbroker serve``; the value is the line that it prints when it is ready."""
    with open(log_file, "wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            raise RuntimeError(log_file.read_text("utf-8", "replace"))
        yield json.loads(first)
        if process.poll() is not None:
            raise RuntimeError(f"the mock ended with status {process.returncode}")
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)
        if process.stdout is not None:
            process.stdout.close()


class KafkaTarget(Target):
    @contextlib.contextmanager
    def start(self, needs: ClusterNeeds, folder: Path) -> Iterator[str]:
        with _SuiteKafka(self.version, folder, needs) as kafka:
            yield ",".join(f"127.0.0.1:{port}" for port in kafka.ports.values())
            kafka.check_running()


class ProxiedTarget(Target):
    """``mockbroker proxy`` in front of another target, whose results are expected of it."""

    def __init__(self, upstream: Target) -> None:
        super().__init__(upstream.name, upstream.version)
        self._upstream = upstream

    @contextlib.contextmanager
    def start(self, needs: ClusterNeeds, folder: Path) -> Iterator[str]:
        behind = replace(needs, port=0, advertised=None)
        with self._upstream.start(behind, folder) as bootstrap:
            command = [sys.executable, "-m", "mockbroker", "proxy", "--exit-with-parent"]
            command.append(f"--upstream={bootstrap}")
            if needs.port:
                command.append(f"--broker-port-base={needs.port - needs.first_id}")
            if needs.advertised is not None:
                host, port = needs.advertised
                command.append(f"--advertise={host}:{port - needs.first_id}")
            with served(command, folder / "proxy.log") as ready:
                yield ",".join(ready["brokers"].values())


class NoTarget(Target):
    @contextlib.contextmanager
    def start(self, needs: ClusterNeeds, folder: Path) -> Iterator[str]:
        yield ",".join(f"127.0.0.1:{port}" for port in free_ports(needs.brokers))


class _SuiteKafka(RealKafka):
    """Real brokers as a suite needs them. Time-outs are Kafka's own, unlike ``RealKafka``'s."""

    def __init__(self, release: str, folder: Path, needs: ClusterNeeds) -> None:
        super().__init__(release, folder, zookeeper=False, broker_ids=needs.ids)
        self._needs = needs
        if needs.port:
            self.ports = {i: needs.port + i - needs.first_id for i in needs.ids}

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        configs = super()._kraft_configs(broker_id)
        for name in ("replica.lag.time.max.ms", "broker.session.timeout.ms"):
            del configs[name]
        if self._needs.advertised is not None:
            host, port = self._needs.advertised
            port += broker_id - self._needs.first_id
            configs["advertised.listeners"] = f"PLAINTEXT://{host}:{port}"
        return {
            **configs,
            "auto.create.topics.enable": "true",
            **_ONE_COPY,
            **_rules(self._needs),
            **self._needs.configs,
        }

    def _format_options(self) -> tuple[str, ...]:
        """A cluster with its release's own features."""
        return () if self._is_before(4, 0) else ("--standalone",)


def target_of(name: str) -> Target:
    """The target of this name. Raises ValueError for any other text."""
    kind, _, version = name.partition(":")
    if kind == "mock" and version:
        return MockTarget(name, version)
    if kind == "kafka" and version:
        return KafkaTarget(name, version)
    if name == "nothing":
        return NoTarget(name, "4.4.0")
    raise ValueError(f"{name!r} is none of mock:PROFILE, kafka:RELEASE and nothing")
