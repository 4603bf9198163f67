"""Real traffic and its capture: librdkafka against its own mock cluster, on a loopback of our own.

    unshare --net python -m benchmarks.dump.traffic big OUT.pcap --megabytes 150

is how ``captures`` starts this. It sets the loopback interface up as a network card looks to a
capture (MTU 1500, no segments put together), so it refuses to run where other traffic could be met:
the network namespace has to have no other interface. OUT.pcap.json has the brokers' ports, and what
was sent and received.

``small``: many api keys in small frames: every compression codec, transactions, a consumer group of
each protocol, an admin client's questions; over and over until the capture is large enough.
``big``: batches of 16 kB, values of 50 to 1150 bytes, several producers and consumers.

In versions that tshark decodes, unless ``--newest``: then in those that librdkafka likes best.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.dump.mock_cluster import KNOWN_TO_TSHARK, MockCluster

__all__ = ["main"]

BROKERS = 3
TOPICS = ("t1", "t2", "t3")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CLASSIC: dict[str, str] = {}
BIG_CLIENTS = 4
POLL_SECONDS = 0.05
MOST_AHEAD = 5000


class Unsuitable(SystemExit):
    """This place is no place to capture in; the text says why."""


def prepare_loopback() -> None:
    others = [name for name in os.listdir("/sys/class/net") if name != "lo"]
    links = json.loads(subprocess.check_output(["ip", "-json", "link"]))
    if len(links) != 1:
        raise Unsuitable(f"not a network namespace of its own: {len(links)} interfaces, {others}")
    # One segment at a time: no offload, so that packets are what a card would send.
    subprocess.run(
        ["ip", "link", "set", "dev", "lo", "mtu", "1500", "gso_max_segs", "1", "up"], check=True
    )


@contextmanager
def captured(path: Path, told: dict[str, Any]) -> Iterator[None]:
    """Whatever crosses the loopback meanwhile is in ``path``."""
    command = ["tcpdump", "-i", "lo", "-s", "0", "-B", "131072", "-n", "-U", "-w", str(path), "tcp"]
    if os.geteuid() == 0:
        command[1:1] = ["-Z", "root"]  # it would give up root, and then may not write there
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        for _ in range(100):
            if path.exists() and path.stat().st_size >= 24:
                break
            time.sleep(0.05)
        yield
        time.sleep(1)
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    told["tcpdump"] = errors.decode().strip().splitlines()[-3:]


def small(path: Path, size: int, servers: str, newest: bool, told: dict[str, Any]) -> None:
    steps: dict[str, Callable[[str, int], int]] = {
        "topics": _topics, "transactions": _transactions, "producers": _producers,
        "group": partial(_group, CLASSIC), "questions": _questions,
    }  # fmt: skip
    if newest:  # tshark knows nothing of that group protocol
        steps["consumer group"] = partial(_group, {"group.protocol": "consumer"})
    done: Counter[str] = Counter()
    turn = 0
    while path.stat().st_size < size:
        turn += 1
        for name, step in steps.items():
            try:
                done[name] += step(servers, turn)
            except Exception as error:
                # What a release of the mock cluster lacks is no reason to have no capture.
                done[f"{name}: {type(error).__name__}"] += 1
    told["done"] = dict(done)


def _topics(servers: str, turn: int) -> int:
    kafka: Any = import_module("confluent_kafka.admin")
    admin = kafka.AdminClient({"bootstrap.servers": servers, "client.id": f"adm-{turn}"})
    made = admin.create_topics([kafka.NewTopic(f"{topic}-{turn}", 6, 1) for topic in TOPICS])
    for future in made.values():
        future.result(0.5)  # the mock of some releases never answers; topics come by themselves
    return len(made)


def _transactions(servers: str, turn: int) -> int:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": servers, "client.id": f"tx-{turn}", "linger.ms": 0,
            "transactional.id": f"tx-{turn}",
        }
    )  # fmt: skip
    producer.init_transactions(10)
    for number in range(10):
        producer.begin_transaction()
        for each in range(20):
            producer.produce(
                f"t1-{turn}", key=f"k{each}", value=b"tx%d" % each, headers={"h": b"1"}
            )
            producer.poll(0)
        producer.abort_transaction(10) if number % 5 == 4 else producer.commit_transaction(10)
    return 10


def _producers(servers: str, turn: int) -> int:
    from confluent_kafka import Producer

    sent = 0
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": servers, "compression.type": codec, "linger.ms": 0,
                "client.id": f"p-{codec}", "batch.num.messages": 4,
            }
        )  # fmt: skip
        for number in range(600):
            producer.produce(
                f"t2-{turn}", key=f"k{number}", value=(f"value {number} " * 8).encode()
            )
            producer.poll(0)
            sent += 1
        producer.flush(10)
    return sent


def _group(protocol: dict[str, str], servers: str, turn: int) -> int:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": f"g{len(protocol)}-{turn}",
            "auto.offset.reset": "earliest", "client.id": "cons-1", "fetch.wait.max.ms": 5,
            "max.partition.fetch.bytes": 1024, **protocol,
        }
    )  # fmt: skip
    consumer.subscribe([f"t1-{turn}", f"t2-{turn}"])
    end, received = time.monotonic() + 6, 0
    while time.monotonic() < end and received < 2200:
        received += sum(each.error() is None for each in consumer.consume(500, POLL_SECONDS))
    with suppress(Exception):
        consumer.commit(asynchronous=False)
    consumer.close()
    return received


def _questions(servers: str, turn: int) -> int:
    from confluent_kafka import TopicPartition

    kafka: Any = import_module("confluent_kafka.admin")
    admin = kafka.AdminClient({"bootstrap.servers": servers, "client.id": f"ask-{turn}"})
    topic = f"t1-{turn}"
    asked: list[Callable[[], Any]] = [
        admin.list_consumer_groups,
        lambda: admin.describe_consumer_groups([f"g0-{turn}"])[f"g0-{turn}"],
        lambda: admin.describe_configs([kafka.ConfigResource(kafka.ResourceType.TOPIC, topic)]),
        lambda: admin.list_offsets({TopicPartition(topic, 0): kafka.OffsetSpec.latest()}),
        admin.describe_cluster,
        lambda: admin.delete_records([TopicPartition(topic, 0, 1)]),
    ]
    for ask in asked:
        with suppress(Exception):
            answer = ask()
            for each in answer.values() if isinstance(answer, dict) else (answer,):
                each.result(0.5)
    return len(asked)


def big(path: Path, size: int, servers: str, newest: bool, told: dict[str, Any]) -> None:
    from confluent_kafka import Consumer, Producer

    common = {"bootstrap.servers": servers}
    producers = [
        Producer({**common, "client.id": f"prod-{number}", "linger.ms": 5, "batch.size": 16384})
        for number in range(BIG_CLIENTS)
    ]
    # Each reads one topic of its own.
    consumers = [
        Consumer({
            **common, "client.id": f"cons-{number}", "group.id": f"g{number}",
            "auto.offset.reset": "earliest", "max.partition.fetch.bytes": 16384,
            "fetch.wait.max.ms": 5,
        })
        for number in range(len(TOPICS))
    ]  # fmt: skip
    for topic in TOPICS:
        producers[0].produce(topic, value=b"first")  # or there is no such topic to subscribe to
    producers[0].flush(10)
    for topic, consumer in zip(TOPICS, consumers, strict=True):
        consumer.subscribe([topic])
    end = time.monotonic() + 10
    while time.monotonic() < end and not all(each.assignment() for each in consumers):
        for consumer in consumers:
            consumer.poll(POLL_SECONDS)
    blob = bytes(random.Random(1).randrange(32, 127) for _ in range(65536))
    lengths = random.Random(2)
    sent = received = 0
    while path.stat().st_size < size * 0.97:
        # The mock forgets old batches: consumers are waited for.
        ahead = sent - received > MOST_AHEAD
        for _ in range(0 if ahead else 500):
            at, length = lengths.randrange(60000), lengths.randrange(50, 1150)
            try:
                producers[sent % BIG_CLIENTS].produce(
                    TOPICS[sent % len(TOPICS)], key=b"key-%d" % sent, value=blob[at : at + length]
                )
            except BufferError:
                producers[sent % BIG_CLIENTS].poll(POLL_SECONDS)
                continue
            sent += 1
        for producer in producers:
            producer.poll(0)
        for consumer in consumers:
            received += sum(each.error() is None for each in consumer.consume(500, 0.002))
    for consumer in consumers:
        consumer.close()
    for producer in producers:
        producer.flush(10)
    told.update(sent=sent, received=received)


SHAPES = {"small": small, "big": big}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=float, required=True)
    parser.add_argument(
        "--newest", action="store_true", help="use versions that tshark cannot decode"
    )
    arguments = parser.parse_args()
    prepare_loopback()
    cluster = MockCluster(BROKERS, {} if arguments.newest else KNOWN_TO_TSHARK)
    ports = [int(server.rpartition(":")[2]) for server in cluster.servers.split(",")]
    told: dict[str, Any] = {"ports": ports}
    make, size = SHAPES[arguments.shape], int(arguments.megabytes * 1e6)
    with captured(arguments.out, told):
        make(arguments.out, size, cluster.servers, arguments.newest, told)
    Path(f"{arguments.out}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
