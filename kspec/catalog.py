"""The clients that the suite knows how to install and drive: what each is, and what it needs.

Facts of released clients. How one is installed is ``runner.install``'s; what it is asked is a
case's. Beside these there are ``reference`` and ``wrong:NAME``, which are ``kspec.wrong``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["CLIENTS", "Client", "Language", "client"]

Language: TypeAlias = Literal["python", "node", "java", "go", "rust"]

_TOOLCHAINS: Final[Mapping[Language, tuple[str, ...]]] = {
    "python": (),
    "node": ("node", "npm"),
    "java": ("java", "maven"),
    "go": ("go",),
    "rust": ("rust",),
}


@dataclass(frozen=True, slots=True)
class Client:
    """One release of one client library. ``adapter`` is its program in ``kspec/adapters``;
    ``engine`` names what really speaks the protocol, where that is another library; ``packages``
    are Debian's, which are fetched where the machine does not have the command already."""

    name: str
    language: Language
    adapter: str
    release: str
    engine: str = ""
    oldest_node: tuple[int, int] | None = None
    packages: tuple[str, ...] = ()

    @property
    def toolchains(self) -> tuple[str, ...]:
        """What has to be on this machine; names as in ``runner.toolchains``."""
        return _TOOLCHAINS[self.language]

    @property
    def independent(self) -> bool:
        """An implementation of the protocol of its own."""
        return not self.engine


CLIENTS: Final[tuple[Client, ...]] = (
    Client("kproto", "python", "kproto", ""),
    Client("kafka-python", "python", "kafka_python", "3.0.12"),
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
    Client("java-admin", "java", "AdminAdapter", "4.4.0"),
    Client("java-admin-3.9", "java", "AdminAdapter", "3.9.2"),
    Client("franz-go", "go", "franz", "v1.22.2"),
    Client("sarama", "go", "sarama", "v1.61.1"),
    Client("rskafka", "rust", "rskafka", "0.6.0"),
)


def client(name: str) -> Client:
    """The client of that name; KeyError otherwise."""
    return {each.name: each for each in CLIENTS}[name]
