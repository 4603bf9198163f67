"""Random listener configs, read by the mock and by released Kafka's own classes: the same
listeners, the same addresses, and refusals that begin with Kafka's words."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

import pytest

from mockbroker.options.listener_configs import ListenerConfigError, listeners_of
from tests.real.listener_facts import KafkaListeners, kafka_listeners
from tests.support.seeds import generator
from tests.support.toolchain import require

COUNT = 1500
NAMES = ("PLAINTEXT", "SSL", "SASL_SSL", "EXTERNAL", "internal", "A-B.c", "CONTROLLER")
HOSTS = ("", "h", "127.0.0.1", "[::1]", "0.0.0.0", "10.0.0.1")
ROLES = ("broker", "broker,controller")


def draw_listener(rng: random.Random) -> str:
    if rng.random() < 0.03:
        return rng.choice(["x", "PLAINTEXT:/h:1", "PLAINTEXT://h", "PLAINTEXT://h!:1", "://h:1"])
    port = rng.choice([0, 0, 9092, 9093, rng.randrange(1, 65536)])
    return f"{rng.choice(NAMES)}://{rng.choice(HOSTS)}:{port}"


def draw_configs(rng: random.Random) -> dict[str, str]:
    """The configs of one broker; most are right."""
    names = rng.sample(NAMES[:-1], rng.randrange(1, 4))
    if rng.random() < 0.7 and "PLAINTEXT" not in names:
        names.append("PLAINTEXT")
    ports = rng.sample(range(1024, 65536), len(names) + 1)
    listed = [f"{name}://{rng.choice(HOSTS)}:{rng.choice([0, port])}"
              for name, port in zip(names, ports, strict=False)]  # fmt: skip
    roles = rng.choice(ROLES)
    if ("controller" in roles) != (rng.random() < 0.05):
        listed.append(f"CONTROLLER://:{ports[-1]}")
    another = draw_listener(rng)
    extra = rng.random() < 0.15 and another not in listed  # 4.2 reads equal ones as one
    if extra:
        listed.append(another)
    mapped = {*names, "CONTROLLER"} - ({rng.choice(names)} if rng.random() < 0.05 else set())
    protocols = ["PLAINTEXT", "ssl", "SASL_PLAINTEXT", "SASL_SSL"]
    pairs = [f"{name}:{rng.choice(protocols)}" for name in sorted(mapped)]
    if rng.random() < 0.04:
        pairs.append(rng.choice(["EXTERNAL:TLS", ":SSL", "PLAINTEXT:SSL"]))
    configs = {
        "process.roles": roles, "node.id": "1", "controller.quorum.voters": "1@localhost:9999"
        if "controller" in roles else "9@localhost:9999",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listed), "listener.security.protocol.map": ",".join(pairs),
    }  # fmt: skip
    if rng.random() < 0.6:
        some = rng.sample(names, rng.randrange(1, len(names) + 1))
        shown = [f"{name}://{rng.choice(HOSTS[:4])}:{rng.randrange(65536)}" for name in some]
        if rng.random() < 0.1:
            shown.append(draw_listener(rng))
        configs["advertised.listeners"] = ",".join(shown)
    if rng.random() < 0.6:
        configs["inter.broker.listener.name"] = rng.choice(names if extra else [*names, "SASL_SSL"])
    if rng.random() < 0.15:
        configs["security.inter.broker.protocol"] = rng.choice(["SSL", "PLAINTEXT", "TLS"])
    return configs


def of_mock(configs: Mapping[str, str]) -> KafkaListeners:
    try:
        found = listeners_of(configs, default="PLAINTEXT://:9092")
    except ListenerConfigError as error:
        return KafkaListeners(refused=error.problem)
    assert found is not None
    every = {each.name: each for each in (*found.clients, *found.controllers)}
    names = [each.partition("://")[0].strip().upper() for each in configs["listeners"].split(",")]
    return KafkaListeners(
        tuple((name, every[name].protocol, every[name].host, every[name].port) for name in names),
        tuple((each.name, each.protocol, *each.advertised)
              for each in found.clients if each.advertised is not None),
        found.inter_broker,
    )  # fmt: skip


def words(text: str) -> str:
    """A refusal without what differs between releases: where Scala or the config is named, and how
    a list is written."""
    text = text.removeprefix("requirement failed: ")
    text = re.sub(r"^Error creating broker listeners from '.*?': (?=[A-Z])", "", text)
    return re.sub(r"[\[\] ]", "", text)


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_listeners_are_those_of_kafka(release: str) -> None:
    require("java", "maven")
    rng = generator("listener configs")
    drawn = [draw_configs(rng) for _ in range(COUNT)]
    refused = 0
    for configs, kafka in zip(drawn, kafka_listeners(release, drawn), strict=True):
        mock = of_mock(configs)
        if kafka.refused:
            refused += 1
            assert words(mock.refused).startswith(words(kafka.refused)), (configs, mock, kafka)
            continue
        assert mock.listeners == kafka.listeners, (configs, mock)
        assert sorted(mock.advertised) == sorted(kafka.advertised), (configs, mock)
        assert mock.inter_broker == kafka.inter_broker, configs
    assert COUNT // 10 < refused < COUNT - COUNT // 10
