"""A real Kafka cluster of four brokers on loopback, started from Maven's jars.

``RealKafka`` starts the processes, waits until every broker serves every other, freezes, thaws and
stops one, and ends them all. It knows how Kafka is configured and nothing of what is asked of it.

Broker 1 is the controller: alone in the KRaft quorum, or the first to register in ZooKeeper.
Nothing happens by itself that a test did not ask for: no topic is created, no leader rebalanced,
and time-outs are so long that a frozen broker stays a live member that does not catch up.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.real.jars import class_path
from tests.support.class_data import ClassData
from tests.support.ports import free_ports

__all__ = [
    "BROKER_IDS",
    "COMMON_CONFIGS",
    "LAGGARD",
    "START_SECONDS",
    "KafkaFailed",
    "RealKafka",
    "properties_of",
]

BROKER_IDS: Final = (1, 2, 3, 4)
LAGGARD: Final = 4
"""The broker that is frozen and stopped; the others run throughout."""

START_SECONDS: Final = 600.0
"""A busy machine takes minutes. A process that ends is noticed at once."""
STOP_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.05
FOREVER_MS: Final = "1800000"

COMMON_CONFIGS: Final[Mapping[str, str]] = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "background.threads": "2",
    "num.io.threads": "2",
    "num.network.threads": "1",
    "replica.lag.time.max.ms": FOREVER_MS,
}
"""What every broker's properties file says, and the mock's brokers' too."""

_SMALL: Final = {
    # A KRaft controller's periodic task (3.9 and later): five minutes pass on a busy machine.
    "unclean.leader.election.interval.ms": "3600000",
    # A cleaner that never has work would take half of the small heap.
    "log.cleaner.dedupe.buffer.size": "1048577",
    "replica.fetch.wait.max.ms": "100",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}

_CONTROLLER_SECURITY: Final = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
}
"""The default for the listeners of controllers since 3.1; before, there is none."""

_JAVA: Final = (
    "java", "-Xmx256m", "-Xms64m", "-Xss512k", "-Xshare:auto", "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true",
    "-Dzookeeper.sasl.client=false",
)  # fmt: skip

_DIES_WITH_PARENT: Final = (
    (
        sys.executable, "-I", "-S", "-c",
        "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
        "os.execvp(sys.argv[1], sys.argv[1:])",
    )
    if sys.platform == "linux"
    else ()
)  # fmt: skip
"""A test run that is killed leaves no broker behind (PR_SET_PDEATHSIG). A program does that, not a
``preexec_fn``: Python then frees what other threads hold in a copy of this process that has no
other threads, and a client of HDFS waits there for its own for ever."""


class KafkaFailed(Exception):
    """A process ended or did not become ready; the text has the end of its log."""


class RealKafka:
    """One cluster; a context manager. ``release`` is a Kafka version, ``folder`` holds its files.

    ``zookeeper`` chooses the older kind of controller, which releases before 4.0 have;
    The first of ``broker_ids`` is the controller, too.
    """

    options: Sequence[str] = ()
    """Options of the Java machine, besides those of every cluster."""

    def __init__(
        self,
        release: str,
        folder: Path,
        *,
        zookeeper: bool,
        broker_ids: Sequence[int] = BROKER_IDS,
    ) -> None:
        self.release = release
        self.zookeeper = zookeeper
        self.ports = dict(zip(broker_ids, free_ports(len(broker_ids)), strict=True))
        self._folder = folder
        self._class_path = class_path(release)
        self._class_data = ClassData(
            Path(self._class_path).parent / ("zookeeper" if zookeeper else "kraft")
        )
        (self._controller_port,) = free_ports(1)
        self._cluster_id = _text_uuid()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._down: set[int] = set()
        self._frozen: set[int] = set()

    def __enter__(self) -> Self:
        try:
            if self.zookeeper:
                self._start_zookeeper()
            else:
                self._format()
            self._start_controllers()
            first, *others = self.ports
            for group in ([first], others):
                for broker_id in group:
                    self._start_broker(broker_id)
                for broker_id in group:
                    self.wait_for(broker_id)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        first = next(iter(self.ports))
        if kind is None and first not in self._frozen:
            self._class_data.keep_of(self._processes[_name(first)])
        self.close()

    def close(self) -> None:
        """End every process. What they keep on disk is worth nothing, so nobody is asked nicely."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(START_SECONDS)

    # ---- what happens to brokers -----------------------------------------------------------------

    def freeze(self, broker_id: int = LAGGARD) -> None:
        """From now on the broker does nothing at all, and nobody notices."""
        self._frozen.add(broker_id)
        self._processes[_name(broker_id)].send_signal(signal.SIGSTOP)

    def thaw(self, broker_id: int = LAGGARD) -> None:
        self._processes[_name(broker_id)].send_signal(signal.SIGCONT)
        self._frozen.discard(broker_id)

    def stop_laggard(self) -> None:
        self.stop(LAGGARD)

    def stop(self, broker_id: int) -> None:
        """A controlled shutdown: leaders move, then the broker leaves the cluster."""
        process = self._processes[_name(broker_id)]
        self._down.add(broker_id)
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise KafkaFailed(self._story(_name(broker_id), "did not shut down")) from None

    def kill(self, broker_id: int) -> None:
        """The process ends at once. Its session in ZooKeeper, if it has one, stays open."""
        process = self._processes[_name(broker_id)]
        self._down.add(broker_id)
        process.kill()
        process.wait(STOP_SECONDS)

    def start(self, broker_id: int) -> None:
        """Start a broker again that was stopped or killed; returns when its port accepts."""
        self._start_broker(broker_id)
        self._down.discard(broker_id)
        self.wait_for(broker_id)

    def wait_for(self, broker_id: int) -> None:
        port = self._port(broker_id)
        self._wait(lambda: _accepts(port), f"broker {broker_id}")

    def _port(self, node_id: int) -> int:
        return self.ports[node_id]

    def check_running(self) -> None:
        """Raises KafkaFailed if a process ended that nobody stopped."""
        down = {_name(broker_id) for broker_id in self._down}
        for name, process in self._processes.items():
            if process.poll() is not None and name not in down:
                raise KafkaFailed(self._story(name, f"ended with status {process.returncode}"))

    # ---- processes -------------------------------------------------------------------------------

    def _start_zookeeper(self) -> None:
        self._write(
            "zookeeper.properties",
            {
                "dataDir": str(self._folder / "zookeeper"),
                "clientPort": str(self._controller_port),
                "clientPortAddress": "127.0.0.1",
                "maxClientCnxns": "0",
                "tickTime": "2000",
                "maxSessionTimeout": FOREVER_MS,
            },
        )
        self._start(
            "zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zookeeper.properties"
        )
        self._wait(lambda: _accepts(self._controller_port), "zookeeper")

    def _format(self) -> None:
        """Storage of the controller by Kafka's own tool; the other brokers' holds one file."""
        first, *others = self.ports
        for broker_id in self.ports:
            self._write(properties_of(broker_id), self._kraft_configs(broker_id))
        self._start(
            "format", "kafka.tools.StorageTool", "format", "--cluster-id", self._cluster_id,
            "--config", properties_of(first), *self._format_options(),
        )  # fmt: skip
        for broker_id in others:
            self.logs(broker_id).mkdir()
            self._identify(broker_id)
        tool = self._processes.pop("format")
        if tool.wait(START_SECONDS) != 0:
            raise KafkaFailed(self._story("format", "could not format storage"))

    def _identify(self, node_id: int) -> None:
        """What storage of a process without metadata of its own holds: who it is."""
        self._write(
            f"{self.logs(node_id).name}/meta.properties",
            {
                "version": "1",
                "cluster.id": self._cluster_id,
                "node.id": str(node_id),
                "directory.id": _text_uuid(),
            },
        )

    def logs(self, node_id: int) -> Path:
        """The log directory of a process."""
        return self._folder / f"logs-{node_id}"

    def _format_options(self) -> tuple[str, ...]:
        """What nobody says gives each release its own defaults; but the mock's partitions behave as
        without eligible leader replicas, which came with 4.0."""
        if self._is_before(4, 0):
            return ()
        return "--standalone", "--feature", "eligible.leader.replicas.version=0"

    def _is_before(self, major: int, minor: int) -> bool:
        own_major, own_minor = self.release.split(".")[:2]
        return (int(own_major), int(own_minor)) < (major, minor)

    @property
    def zookeeper_address(self) -> str:
        return f"127.0.0.1:{self._controller_port}"

    def _start_controllers(self) -> None:
        """Those that are no brokers: none."""

    def _start_broker(self, broker_id: int) -> None:
        if self.zookeeper:
            self._write(properties_of(broker_id), self._zookeeper_configs(broker_id))
        self._start(_name(broker_id), "kafka.Kafka", properties_of(broker_id))

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        mine = f"PLAINTEXT://127.0.0.1:{self.ports[broker_id]}"
        quorum = f"127.0.0.1:{self._controller_port}"
        first = next(iter(self.ports))
        controls = broker_id == first
        return {
            **COMMON_CONFIGS,
            **_SMALL,
            "node.id": str(broker_id),
            "process.roles": "broker,controller" if controls else "broker",
            **(
                {"controller.quorum.voters": f"{first}@{quorum}"}
                if self._is_before(4, 0)
                else {"controller.quorum.bootstrap.servers": quorum}
            ),
            "controller.listener.names": "CONTROLLER",
            **(_CONTROLLER_SECURITY if self._is_before(3, 1) else {}),
            "listeners": f"{mine},CONTROLLER://{quorum}" if controls else mine,
            "log.dirs": str(self.logs(broker_id)),
            "broker.session.timeout.ms": FOREVER_MS,
        }

    def _zookeeper_configs(self, broker_id: int) -> dict[str, str]:
        return {
            **COMMON_CONFIGS,
            **_SMALL,
            "broker.id": str(broker_id),
            "zookeeper.connect": self.zookeeper_address,
            "zookeeper.session.timeout.ms": FOREVER_MS,
            "controller.socket.timeout.ms": FOREVER_MS,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker_id]}",
            "log.dirs": str(self.logs(broker_id)),
        }

    def _write(self, name: str, values: Mapping[str, str]) -> None:
        lines = "".join(f"{key}={value}\n" for key, value in values.items())
        (self._folder / name).write_text(lines, "utf-8")

    def _start(self, name: str, *arguments: str) -> None:
        class_data = self._class_data.options(record=name == _name(next(iter(self.ports))))
        java = [*_JAVA, *self.options, *class_data, "-cp", self._class_path]
        with open(self._log(name), "ab") as log:
            self._processes[name] = subprocess.Popen(
                [*_DIES_WITH_PARENT, *java, *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Signals from the terminal are ours to pass on, except that nobody survives us.
                start_new_session=True,
            )

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            self.check_running()
            if time.monotonic() > deadline:
                raise KafkaFailed(f"{what} was not ready within {START_SECONDS} s")
            time.sleep(POLL_SECONDS)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _story(self, name: str, problem: str) -> str:
        end = self._log(name).read_text("utf-8", "replace")[-4000:]
        return f"{name} of Kafka {self.release} {problem}; its log ends:\n{end}"


def _name(broker_id: int) -> str:
    return f"broker-{broker_id}"


def properties_of(broker_id: int) -> str:
    return f"broker-{broker_id}.properties"


def _text_uuid() -> str:
    """A random uuid as Kafka writes them, none that begins with a dash: tools take it as option."""
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False
