"""The clients that the suite can install and drive.

This module states facts about released clients. ``runner.install`` installs them. Besides these,
``kspec.defects`` provides ``reference`` and ``wrong:NAME``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

__all__ = ["CLIENTS", "Client", "Language", "client"]

Language: TypeAlias = Literal["python", "node", "java", "go", "rust", "c"]

_TOOLCHAINS: Final[Mapping[Language, tuple[str, ...]]] = {
    "python": (),
    "node": ("node", "npm"),
    "java": ("java", "maven"),
    "go": ("go",),
    "rust": ("rust",),
    "c": ("gcc", "make"),
}


@dataclass(frozen=True, slots=True)
class Client:
    """One release of a client library.

    ``adapter`` is its program in ``kspec/adapters``. ``engine`` names the library that speaks the
    protocol, if that is another one. ``package`` is its name in the registry of its language, if
    that is not ``name``. ``packages`` are Debian packages, fetched if the machine lacks the
    command. ``tools`` are toolchains beside its language's. ``apart`` if a client in Node has a
    folder of its own, without those of the manifest; ``node`` is the release of Node.js that npm
    then brings with it. ``chosen`` if the release is not the catalog's but one that the user asked
    for.
    """

    name: str
    language: Language
    adapter: str
    release: str
    engine: str = ""
    package: str = ""
    oldest_node: tuple[int, int] | None = None
    packages: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    apart: bool = False
    node: str = ""
    chosen: bool = False

    @property
    def registered(self) -> str:
        """The client's name in the registry of its language."""
        return self.package or self.name

    @property
    def toolchains(self) -> tuple[str, ...]:
        """Toolchains the client needs, named as in ``runner.toolchains``."""
        return (*_TOOLCHAINS[self.language], *self.tools)

    @property
    def independent(self) -> bool:
        """Whether the client implements the protocol itself."""
        return not self.engine


CLIENTS: Final[tuple[Client, ...]] = (
    Client("kproto", "python", "kproto", ""),
    Client("kafka-python", "python", "kafka_python", "3.0.12"),
    Client("kafka-python-ng", "python", "kafka_python_ng", "2.2.3"),
    Client("aiokafka", "python", "aiokafka", "0.14.0"),
    Client("confluent-kafka", "python", "confluent", "2.16.1", engine="librdkafka"),
    Client(
        "kcat",
        "python",
        "kcat",
        "1.7.1",
        engine="librdkafka",
        packages=("kcat", "librdkafka1", "libyajl2", "libsasl2-2"),
    ),
    Client("kafkajs", "node", "kafkajs", "2.2.4"),
    Client("@platformatic/kafka", "node", "platformatic", "1.35.0", oldest_node=(20, 19)),
    Client(
        "@platformatic/kafka-2",
        "node",
        "platformatic",
        "2.12.1",
        package="@platformatic/kafka",
        apart=True,
        node="22.23.3",
    ),
    Client("kafka-ts", "node", "kafka_ts", "1.5.0", oldest_node=(20, 0)),
    Client("kafka-clients", "java", "AdminAdapter", "4.4.0"),
    Client("kafka-clients-3.9", "java", "AdminAdapter", "3.9.2"),
    Client("kafka-streams", "java", "StreamsAdapter", "4.4.0", engine="kafka-clients"),
    Client("kafka-streams-4.3", "java", "StreamsAdapter", "4.3.1", engine="kafka-clients"),
    Client("franz-go", "go", "franz", "v1.22.2", package="github.com/twmb/franz-go"),
    Client("sarama", "go", "sarama", "v1.61.1", package="github.com/IBM/sarama"),
    Client("kafka-go", "go", "kafkago", "v0.4.51", package="github.com/segmentio/kafka-go"),
    Client(
        "confluent-kafka-go",
        "go",
        "confluent",
        "v2.11.1",
        engine="librdkafka",
        package="github.com/confluentinc/confluent-kafka-go/v2",
        tools=("gcc",),
    ),
    Client("rskafka", "rust", "rskafka", "0.6.0"),
    # Linked with the librdkafka below, by its feature dynamic-linking.
    Client(
        "rdkafka",
        "rust",
        "rdkafka",
        "0.39.0",
        engine="librdkafka",
        tools=("gcc", "make", "npm"),
    ),
    # Its sources come with a package of npm: runner.librdkafka.
    Client("librdkafka", "c", "librdkafka", "2.15.1", tools=("npm",)),
)


def client(name: str) -> Client:
    """Return the client of that name. ``NAME@RELEASE`` is the client at another release than the
    catalog's. Raises KeyError if there is none, ValueError if it only has one release here."""
    known = {each.name: each for each in CLIENTS}
    base, _, release = name.rpartition("@")
    if name in known or base not in known:
        return known[name]
    found = known[base]
    if not release or not found.release or found.packages:
        raise ValueError(f"{base} has one release here; run it without @{release}")
    package = found.registered
    return replace(found, name=name, release=release, package=package, chosen=True)
