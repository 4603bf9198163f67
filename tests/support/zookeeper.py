"""A real ZooKeeper server on loopback: one process, with temporary data.

Without a JDK or Maven the calling test is skipped, or fails where ``KPROTO_REQUIRE`` requires them.
"""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.maven import artifacts
from tests.support.ports import free_ports
from tests.support.toolchain import require

__all__ = ["VERSION", "ZooKeeperServer", "running_server", "steerable_server"]

VERSION = "3.8.4"
"""The release that Kafka 3.9 ships."""

_JARS = [
    ("org.apache.zookeeper:zookeeper", VERSION),
    ("org.apache.zookeeper:zookeeper-jute", VERSION),
    ("org.slf4j:slf4j-api", "1.7.30"),
    # Declared as "provided", although the server does not start without them.
    ("io.dropwizard.metrics:metrics-core", "4.1.12.1"),
    ("org.xerial.snappy:snappy-java", "1.1.10.7"),
]
_JVM = [
    "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
    # The data need not survive a power cut.
    "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=1024",
]  # fmt: skip
_SETTINGS = {
    "clientPortAddress": "127.0.0.1",
    "tickTime": "500",  # sessions last 2 to 20 of these
    "admin.enableServer": "false",
    "maxClientCnxns": "0",
    "4lw.commands.whitelist": "srvr",
}
ATTEMPTS = 3
READY_SECONDS = 60.0


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server and yield its address, "127.0.0.1:PORT"."""
    with steerable_server() as server:
        yield server.address


class ZooKeeperServer:
    """A server that can hang, die, and restart at the same port with the same data."""

    def __init__(self, jars: list[Path], folder: Path) -> None:
        self._jars, self._folder = jars, folder
        self._process, self._port = _start(jars, folder)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def hang(self) -> None:
        """Stop answering; connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Start again after ``kill``."""
        self._process = _launch(
            self._jars, _config(self._folder, self._port), self._folder / "output-restart"
        )
        if not _is_ready(self._process, self._port):
            raise RuntimeError("ZooKeeper did not start again")


@contextmanager
def steerable_server() -> Iterator[ZooKeeperServer]:
    """As ``running_server``, for tests that stop the server meanwhile."""
    require("java", "maven")
    jars = artifacts(_JARS)
    with tempfile.TemporaryDirectory(prefix="zookeeper-") as folder:
        server = ZooKeeperServer(jars, Path(folder))
        try:
            yield server
        finally:
            server.kill()


def _start(jars: list[Path], folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """ZooKeeper does not support port 0, so try free ports until one is still free."""
    for attempt in range(ATTEMPTS):
        (port,) = free_ports(1)
        output = folder / f"output-{attempt}"
        process = _launch(jars, _config(folder, port), output)
        if _is_ready(process, port):
            return process, port
        process.kill()
        process.wait()
    raise RuntimeError(f"ZooKeeper did not start:\n{output.read_text('utf-8', 'replace')}")


def _config(folder: Path, port: int) -> Path:
    settings = {**_SETTINGS, "clientPort": str(port), "dataDir": str(folder / "data")}
    config = folder / f"zoo-{port}.cfg"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")
    return config


def _launch(jars: list[Path], config: Path, output: Path) -> subprocess.Popen[bytes]:
    class_path = os.pathsep.join(map(str, jars))
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    with output.open("wb") as sink:
        return subprocess.Popen(
            ["java", *_JVM, "-cp", class_path, main, str(config)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )


def _is_ready(process: subprocess.Popen[bytes], port: int) -> bool:
    """Poll until the server answers ``srvr`` with its mode; False if it ends or does not answer."""
    deadline = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
                connection.sendall(b"srvr")
                if b"Mode: standalone" in b"".join(iter(lambda: connection.recv(4096), b"")):
                    return True
        except OSError:
            pass
        time.sleep(0.05)
    return False
