"""Make the captures of this folder anew: ``python -m tests.captures.make [NAME...]``.

Each has its recipe below. What runs the brokers is ``tests.real``'s, what starts the mock and the
clients of the demo is ``demo``'s, the programs of everyday traffic are in ``clients``. It takes
dumpcap with the right to listen on the loopback interface, tshark's mergecap, and every toolchain
of ``make demo``; tests take none of it. Whatever runs on this machine meanwhile is filtered out by
the ports of the brokers, which are ephemeral.

Beside the captures it writes ``captures.json``: which program said what of itself, and the ports.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import zstandard
from rich.console import Console

from demo import catalog, cluster, drivers, story
from demo.screen import Terminal
from demo.wire import PROFILES
from kspec.runner import install
from tests.captures import programs
from tests.captures.secured import OpenToAll
from tests.real.kafka import RealKafka
from tests.real.secured_kafka import password

__all__ = ["FOLDER", "MANIFEST", "main"]

FOLDER: Final = Path(__file__).resolve().parent
MANIFEST: Final = FOLDER / "captures.json"
QUIET_SECONDS: Final = 0.6
"""What dumpcap is given to write down the last packets."""

Said = dict[str, Any]


# ---- packets -------------------------------------------------------------------------------------


@contextmanager
def recorded(ports: Iterable[int], path: Path) -> Iterator[None]:
    """Every packet from or to these ports of the loopback interface, as classic pcap: pcapng would
    hold this machine's name and kernel."""
    wanted = " or ".join(f"tcp port {port}" for port in sorted(ports))
    command = ["dumpcap", "-q", "-P", "-i", "lo", "-B", "16", "-f", wanted, "-w", str(path)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        for line in process.stderr or ():
            if line.startswith(b"File:"):
                break
        else:
            raise RuntimeError("dumpcap cannot listen on lo")
        yield
        time.sleep(QUIET_SECONDS)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)


def keep(name: str, parts: list[Path], ports: set[int], said: list[Said], broker: str) -> None:
    """Merge the parts by time, compress them, and note what they are."""
    whole = parts[0].with_name("whole.pcap")
    subprocess.run(["mergecap", "-F", "pcap", "-w", str(whole), *map(str, parts)], check=True)
    data = without_folder(whole.read_bytes(), whole.parent)
    file = FOLDER / f"{name}.pcap.zst"
    file.write_bytes(zstandard.compress(data, level=19))
    manifest = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
    manifest[name] = {"broker": broker, "ports": sorted(ports), "programs": said}
    text = json.dumps(dict(sorted(manifest.items())), indent=1, ensure_ascii=False)
    MANIFEST.write_text(text + "\n")
    print(f"{file.name}: {len(data)} bytes, {file.stat().st_size} compressed", flush=True)
    for each in said:
        print(f"  {each}", flush=True)


def without_folder(data: bytes, folder: Path) -> bytes:
    """DescribeLogDirs tells where brokers keep their logs: write over it, so that no path of this
    machine is kept. (Checksums of packets on a loopback interface are not right anyway.)"""
    path = str(folder).encode()
    return data.replace(path, b"/var/lib/kafka".ljust(len(path), b"-")[: len(path)])


# ---- against the mock ----------------------------------------------------------------------------


def mock(name: str, profile_name: str) -> None:
    """The story of the demo, by each of its clients, each with a mock cluster of its own."""
    (profile,) = (each for each in PROFILES if each.name == profile_name)
    screen = Terminal(Console(quiet=True))
    parts: list[Path] = []
    all_ports: set[int] = set()
    said: list[Said] = []
    with tempfile.TemporaryDirectory() as folder:
        for client in catalog.CLIENTS:
            launch = install.install(client.installed)
            parts.append(Path(folder, f"{len(parts)}.pcap"))
            with cluster.start(profile.name) as mock_cluster, ExitStack() as stack:
                ports = _ports(mock_cluster.bootstrap)
                stack.enter_context(recorded(ports, parts[-1]))
                with drivers.drive(launch, mock_cluster.bootstrap, client.client_id) as driver:
                    outcomes = story.run(client, profile, driver, mock_cluster, screen)
                    said.append({"client": client.name, "version": driver.version, "failed": {}})
                assert all(outcome.mark != "wrong" for outcome in outcomes.values()), outcomes
            all_ports |= ports
        keep(name, parts, all_ports, said, f"the mock broker, profile {profile.name}")


def _ports(bootstrap: str) -> set[int]:
    return {int(address.rpartition(":")[2]) for address in bootstrap.split(",")}


# ---- against Kafka -------------------------------------------------------------------------------


def startup(name: str, release: str) -> None:
    """Brokers and their controller among themselves: registration, metadata, replication."""
    with tempfile.TemporaryDirectory() as folder:
        kafka = RealKafka(release, Path(folder), zookeeper=False)
        ports = {*kafka.ports.values(), kafka._controller_port}
        part = Path(folder, "part.pcap")
        with recorded(ports, part):
            try:
                kafka.__enter__()
                time.sleep(2)
                said = [programs.admin(catalog.client("kafka-clients"), _bootstrap(kafka))]
            finally:
                kafka.close()
        keep(name, [part], ports, said, f"Apache Kafka {release}, KRaft")


def everyday(name: str, release: str, names: list[str], *, java: str = "") -> None:
    """Produce, consume and administer: each of the programs, on one cluster. ``java`` is the
    release of the Java clients, the brokers' own where it is not given."""
    zookeeper = release.startswith("2.")
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "part.pcap")
        with RealKafka(release, Path(folder), zookeeper=zookeeper) as kafka:
            ports = set(kafka.ports.values())
            bootstrap = _bootstrap(kafka)
            with recorded(ports, part):
                said = [programs.everyday(each, java or release, bootstrap) for each in names]
        kind = "ZooKeeper" if zookeeper else "KRaft"
        keep(name, [part], ports, said, f"Apache Kafka {release}, {kind}")


def reassignments(name: str, release: str) -> None:
    """The admin clients of the demo: reassign, list, cancel, elect."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "part.pcap")
        with RealKafka(release, Path(folder), zookeeper=False) as kafka:
            bootstrap, ports = _bootstrap(kafka), set(kafka.ports.values())
            programs.make_topics(bootstrap)
            with recorded(ports, part):
                said = [programs.admin(each, bootstrap) for each in catalog.CLIENTS]
        keep(name, [part], ports, said, f"Apache Kafka {release}, KRaft")


def secured(name: str, release: str) -> None:
    """SASL by each mechanism, a password that is wrong, rules, credentials; a TLS connection."""
    user = "admin"
    logins = [
        (client, mechanism, user, password(user))
        for client in ("confluent", "kafka-python", "aiokafka", "java")
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    logins.append(("aiokafka", "PLAIN", user, "not-the-password"))
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "part.pcap")
        with OpenToAll(release, Path(folder)) as kafka:
            ports = {kafka.port, kafka.tls_port}
            with recorded(ports, part):
                said = [
                    programs.everyday(client, release, kafka.bootstrap, *login)
                    for client, *login in logins
                ]
                tls = f"127.0.0.1:{kafka.tls_port}"
                said.append(programs.everyday("confluent", release, tls, "TLS", "-", "-"))
        keep(name, [part], ports, said, f"Apache Kafka {release}, KRaft, SASL and TLS")


def _bootstrap(kafka: RealKafka) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in kafka.ports.values())


PYTHON: Final = ["confluent", "kafka-python", "aiokafka"]
OTHERS: Final = ["java", "franz-go", "sarama", "kafkajs", "platformatic"]

RECIPES: Final[dict[str, Callable[[str], None]]] = {
    "mock-2.4": lambda name: mock(name, "kafka-2.4"),
    "mock-4.4": lambda name: mock(name, "kafka-4.4"),
    "kafka-2.4.1-everyday-1": lambda name: everyday(name, "2.4.1", PYTHON),
    "kafka-2.4.1-everyday-2": lambda name: everyday(name, "2.4.1", OTHERS, java="3.9.2"),
    "kafka-4.4.0-everyday-1": lambda name: everyday(name, "4.4.0", PYTHON),
    "kafka-4.4.0-everyday-2": lambda name: everyday(name, "4.4.0", OTHERS),
    "kafka-3.9.2-everyday-1": lambda name: everyday(name, "3.9.2", PYTHON),
    "kafka-3.9.2-everyday-2": lambda name: everyday(name, "3.9.2", OTHERS),
    "kafka-4.4.0-admin": lambda name: reassignments(name, "4.4.0"),
    "kafka-3.9.2-admin": lambda name: reassignments(name, "3.9.2"),
    "kafka-4.4.0-brokers": lambda name: startup(name, "4.4.0"),
    "kafka-3.9.2-brokers": lambda name: startup(name, "3.9.2"),
    "kafka-4.4.0-secured": lambda name: secured(name, "4.4.0"),
}


def main(names: list[str]) -> None:
    for name in names or RECIPES:
        RECIPES[name](name)


if __name__ == "__main__":
    main(sys.argv[1:])
