"""What released brokers say of the listeners in their configs: Kafka's own classes, no broker."""

from __future__ import annotations

import re
import subprocess
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from tests.real.jars import class_path

__all__ = ["KafkaListeners", "kafka_listeners"]

SOURCE: Final = Path(__file__).with_name("ListenerFacts.java")
_LIMIT: Final = 120.0
_ENDPOINT: Final = re.compile(
    r"EndPoint\((?P<host>[^,]*),(?P<port>-?\d+),ListenerName\((?P<name>[^)]*)\),(?P<protocol>\w+)\)"
    r"|Endpoint\(listenerName='(?P<name2>[^']*)', securityProtocol=(?P<protocol2>\w+), "
    r"host='(?P<host2>[^']*)', port=(?P<port2>-?\d+)\)"
)


class KafkaListeners(msgspec.Struct, frozen=True):
    """(name, protocol, host, port) of the listeners and of the advertised ones, and the name of
    the listener for brokers; or the text of the refusal."""

    listeners: tuple[tuple[str, str, str, int], ...] = ()
    advertised: tuple[tuple[str, str, str, int], ...] = ()
    inter_broker: str = ""
    refused: str = ""


@cache
def _classes(release: str) -> str:
    jars = class_path(release)
    folder = Path(jars).parent / "listener-facts"
    if not folder.is_dir():
        subprocess.run(
            ["javac", "-nowarn", "-cp", jars, "-d", str(folder), str(SOURCE)], check=True,
            timeout=_LIMIT,
        )  # fmt: skip
    return f"{folder}:{jars}"


def kafka_listeners(release: str, given: Sequence[Mapping[str, str]]) -> list[KafkaListeners]:
    """What a broker of the release says of each properties file."""
    lines = [b64encode("".join(f"{key}={value}\n" for key, value in each.items()).encode())
             for each in given]  # fmt: skip
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
         "-cp", _classes(release), "ListenerFacts"],
        input=b"".join(line + b"\n" for line in lines), capture_output=True, check=True,
        timeout=_LIMIT,
    )  # fmt: skip
    return [_read(line) for line in done.stdout.decode().splitlines()]


def _read(line: str) -> KafkaListeners:
    verdict, *parts = line.split("\t")
    if verdict == "refused":
        return KafkaListeners(refused=parts[0])
    listeners, advertised, inter_broker = parts
    return KafkaListeners(
        _endpoints(listeners), _endpoints(advertised), inter_broker[len("ListenerName(") : -1]
    )


def _endpoints(text: str) -> tuple[tuple[str, str, str, int], ...]:
    found = []
    for match in _ENDPOINT.finditer(text):
        host = match["host"] or match["host2"]
        name, protocol = match["name"] or match["name2"], match["protocol"] or match["protocol2"]
        port = int(match["port"] or match["port2"])
        found.append((name, protocol, "" if host == "null" else host, port))
    return tuple(found)
