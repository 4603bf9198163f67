"""Start the clients of the captures: the programs in ``clients``, and the demo's admin drivers.

Each is installed and built by ``kspec.runner.install``, next to the adapters; each is run to its
end, and what it says of itself is handed back: ``{"client", "version", "failed"}``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from demo import catalog, drivers
from kproto import builds
from kproto.client import Admin, NewTopic
from kspec.runner.install import install
from tests.real.jars import class_path

__all__ = ["admin", "everyday", "make_topics"]

CLIENTS: Final = Path(__file__).resolve().parent / "clients"
ROOT: Final = CLIENTS.parents[2]
SECONDS: Final = 150.0

_PYTHON: Final = {
    "confluent": ("confluent-kafka", "tests.captures.clients.confluent"),
    "kafka-python": ("kafka-python", "tests.captures.clients.kafka_python"),
    "aiokafka": ("aiokafka", "tests.captures.clients.aiokafka_"),
}
_NODE: Final = {"kafkajs": "kafkajs", "platformatic": "@platformatic/kafka"}
_GO: Final = {"franz-go": "franz", "sarama": "sarama"}


def everyday(client: str, release: str, bootstrap: str, *login: str) -> dict[str, Any]:
    """Run one program. ``release`` chooses the Java clients', which are Kafka's own."""
    environment = dict(os.environ)
    cwd = ROOT
    if client in _PYTHON:
        name, module = _PYTHON[client]
        launch = install(catalog.client(name).installed)
        environment |= launch.environment
        command = [launch.command[0], "-W", "ignore", "-m", module]
    elif client in _NODE:
        launch = install(catalog.client(_NODE[client]).installed)
        assert launch.cwd is not None
        cwd = launch.cwd
        # Modules are looked for beside the script itself.
        shutil.copy(CLIENTS / "everyday.mjs", cwd)
        command = ["node", "everyday.mjs", client]
    elif client in _GO:
        command = [str(_built_by_go() / _GO[client])]
    else:
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", class_path(release),
                   str(CLIENTS / "Everyday.java")]  # fmt: skip
        environment["JDK_JAVA_OPTIONS"] = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    done = subprocess.run(
        [*command, bootstrap, "everyday", *login],
        cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=SECONDS,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise RuntimeError(f"{client} failed: {done.stderr[-2000:]}")
    said: dict[str, Any] = json.loads(lines[-1])
    if not said["version"]:
        said["version"] = release if client == "java" else catalog.client(client).release
    return said


def _built_by_go() -> Path:
    """The adapters' modules, the captures' programs."""
    source = CLIENTS.parents[2] / "kspec" / "adapters" / "go"
    files = [source / "go.mod", source / "go.sum", *sorted(CLIENTS.glob("*/main.go"))]

    def build(folder: Path) -> None:
        made = folder / "source"
        for file in files:
            target = made / (file.name if file.suffix != ".go" else f"{file.parent.name}/main.go")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        builds.run(["go", "build", "-trimpath", "-o", f"{folder}{os.sep}", "./franz", "./sarama"],
                    cwd=made)  # fmt: skip

    return builds.built("captures/go", [file.read_text() for file in files], build)


TOPICS: Final = ("moved", "cancelled")


def make_topics(bootstrap: str) -> None:
    """What the admin clients move about: one partition each, on brokers 1 and 2."""
    wanted = [
        NewTopic(f"{name}-{suffix(client)}", replica_assignments={0: [1, 2]})
        for client in catalog.CLIENTS
        for name in TOPICS
    ]

    async def create() -> None:
        async with Admin(bootstrap) as asks:
            await asks.create_topics(wanted).all()

    asyncio.run(create())


def suffix(client: catalog.Client) -> str:
    """Its name, for topics."""
    return client.name.strip("@").replace("/", "-")


def admin(client: catalog.Client, bootstrap: str) -> dict[str, Any]:
    """Reassign, list, cancel, elect: as far as the client has calls for it."""
    launch = install(client.installed)
    name = suffix(client)
    failed = {}
    with drivers.drive(launch, bootstrap, client.client_id) as driver:
        calls: list[tuple[str, str, dict[str, Any]]] = [
            ("cluster", "describe_cluster", {}),
            ("move", "alter", {"topic": f"moved-{name}", "replicas": [2, 3]}),
            ("list", "list", {"partitions": [[f"moved-{name}", 0]]}),
            ("unknown", "alter", {"topic": f"unknown-{name}", "replicas": [1]}),
            ("bad", "alter", {"topic": f"cancelled-{name}", "replicas": [1, 77]}),
            ("cancel", "alter", {"topic": f"cancelled-{name}", "replicas": None}),
            ("elect", "elect", {"topic": f"cancelled-{name}"}),
        ]
        for what, op, arguments in calls:
            if op in ("alter", "elect"):
                arguments["partition"] = 0
            answer = driver.call(op, **arguments)
            if not answer.ok:
                failed[what] = str(answer)
        return {"client": client.name, "version": driver.version, "failed": failed}
