"""Make ``operations.pcapng.zst`` anew: ``python -m tests.wiredump.questions.recipe``.

A Kafka 4.4.0 of three brokers, each with a listener for TLS, and whatever an operator asks about:
groups of both protocols that rebalance, transactions that end in every way, a producer that is
throttled, reassignments, an election, errors, a connection that is reset. The secrets of TLS are in
the capture, so that every command decrypts it. Takes dumpcap with the right to listen on the
loopback interface; tests take none of it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from struct import pack, unpack_from
from threading import Thread
from typing import Any, Final

import confluent_kafka
import zstandard
from aiokafka import AIOKafkaProducer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer

from kproto.capture.container import pcapng_interface, pcapng_packet, pcapng_secrets, pcapng_section
from kproto.client import Admin
from kproto.client.connection import Connection
from kproto.messages import AlterClientQuotasRequest
from kproto.messages.alter_client_quotas_request import EntityData, EntryData, OpData
from tests.captures.make import recorded, without_folder
from tests.captures.secured import keystore_configs
from tests.real.kafka import RealKafka
from tests.support.ports import free_ports

__all__ = ["CAPTURE", "main"]

CAPTURE: Final = Path(__file__).with_name("operations.pcapng.zst")
RELEASE: Final = "4.4.0"


class WithTls(RealKafka):
    """Three brokers, each with a second listener: TLS, with a certificate made for this run."""

    def __init__(self, folder: Path) -> None:
        super().__init__(RELEASE, folder, zookeeper=False, broker_ids=(1, 2, 3))
        self.tls_ports = dict(zip(self.ports, free_ports(3), strict=True))

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        configs = super()._kraft_configs(broker_id)
        return {
            **configs,
            "listeners": f"{configs['listeners']},SSL://127.0.0.1:{self.tls_ports[broker_id]}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL",
            **keystore_configs(self._folder),
            "group.initial.rebalance.delay.ms": "200",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }


def bootstrap(ports: dict[int, int]) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in ports.values())


# ---- clients -------------------------------------------------------------------------------------


def shop(tls: dict[str, Any]) -> None:
    """Orders come in, over TLS."""
    producer = KafkaProducer(**tls, client_id="checkout", linger_ms=5)
    for number in range(300):
        producer.send("orders", key=b"customer-%d" % (number % 17), value=b"o" * 120)
    producer.flush()
    producer.close()


async def billing(servers: str, context: ssl.SSLContext) -> None:
    """A transaction with offsets that is committed, one that is aborted."""
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, client_id="billing", transactional_id="billing-1",
        security_protocol="SSL", ssl_context=context,
    )  # fmt: skip
    await producer.start()
    try:
        async with producer.transaction():
            for number in range(5):
                await producer.send_and_wait("payments", b"p%d" % number)
            offsets = {TopicPartition("orders", 0): 12, TopicPartition("orders", 1): 9}
            await producer.send_offsets_to_transaction(offsets, "shipping")
        await producer.begin_transaction()
        await producer.send_and_wait("payments", b"mistake")
        await producer.abort_transaction()
    finally:
        await producer.stop()


def ledger(servers: str) -> None:
    """Another producer takes the transactional id of an open transaction; one stays open."""

    def producer(client_id: str, transactional_id: str) -> confluent_kafka.Producer:
        made = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers, "client.id": client_id,
                "transactional.id": transactional_id, "log_level": 0,
            }
        )  # fmt: skip
        made.init_transactions(30)
        made.begin_transaction()
        made.produce("payments", b"entry")
        made.flush(30)
        return made

    first = producer("ledger-old", "ledger")
    second = producer("ledger-new", "ledger")
    try:
        first.commit_transaction(30)
    except confluent_kafka.KafkaException as error:
        print("ledger-old:", error.args[0].name())
    second.commit_transaction(30)
    _OPEN.append(producer("archive", "archive"))


_OPEN: Final[list[Any]] = []
"""Producers that are not ended before the capture is."""


def shipping(tls: dict[str, Any]) -> None:
    """A classic group of two members, one of which leaves."""

    def member(name: str) -> KafkaConsumer:
        return KafkaConsumer(
            "orders", **tls, group_id="shipping", client_id=name, auto_offset_reset="earliest",
            session_timeout_ms=10_000, heartbeat_interval_ms=300,
        )  # fmt: skip

    one, two = member("shipping-1"), member("shipping-2")
    _poll(one, lambda: len(one.assignment()) == 3)
    both = Thread(target=_poll, args=(two, lambda: 0 < len(two.assignment()) < 3))
    both.start()
    _poll(one, lambda: 0 < len(one.assignment()) < 3 and not both.is_alive())
    both.join()
    two.close()
    _poll(one, lambda: len(one.assignment()) == 3)
    one.close()


def _poll(consumer: KafkaConsumer, done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, consumer.assignment()
        consumer.poll(timeout_ms=100)


def analytics(servers: str) -> None:
    """A group of KIP-848, of two members, one of which leaves."""

    def member(name: str) -> confluent_kafka.Consumer:
        made = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers, "client.id": name, "group.id": "analytics",
                "group.protocol": "consumer", "auto.offset.reset": "earliest", "log_level": 0,
            }
        )  # fmt: skip
        made.subscribe(["orders"])
        return made

    def until(done: Callable[[], bool], *members: confluent_kafka.Consumer) -> None:
        end = time.monotonic() + 60
        while not done():
            assert time.monotonic() < end
            for each in members:
                each.poll(0.1)

    one, two = member("analytics-1"), member("analytics-2")
    until(lambda: len(one.assignment()) + len(two.assignment()) == 3 and bool(two.assignment()),
          one, two)  # fmt: skip
    two.close()
    until(lambda: len(one.assignment()) == 3, one)
    one.close()


def loader(servers: str) -> None:
    """A producer with a quota that it exceeds."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "client.id": "batch-loader", "log_level": 0}
    )
    for _ in range(12):
        for _ in range(20):
            producer.produce("events", b"e" * 1000, partition=0)
        producer.flush(30)


async def operator(ports: dict[int, int]) -> None:
    """Moves partitions, elects leaders, asks for what is not there."""
    async with Admin(bootstrap(ports), client_id="operator") as admin:
        moves = {("orders", 0): [2, 3], ("orders", 1): [1, 9], ("nothing", 0): [1]}
        result = admin.alter_partition_reassignments(moves)
        await asyncio.gather(*result.values.values(), return_exceptions=True)
        while await admin.list_partition_reassignments():
            await asyncio.sleep(0.2)
        await admin.elect_preferred_leaders([("orders", 0), ("payments", 0)]).partitions()


async def quota(port: int) -> None:
    rate = OpData(key="producer_byte_rate", value=20_000.0)
    entity = [EntityData(entity_type="client-id", entity_name="batch-loader")]
    async with await Connection.open("127.0.0.1", port, client_id="operator") as connection:
        await connection.request(
            AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[rate])])
        )


def impatient(port: int) -> None:
    """A client that resets its connection."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(bytes.fromhex("00000013 0012 0000 00000001 0009") + b"impatient")
        time.sleep(0.3)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))


# ---- the capture ---------------------------------------------------------------------------------


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, part = folder / "keys.log", folder / "part.pcap"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.keylog_filename = str(log)
        with WithTls(folder) as kafka:
            plain, secured = bootstrap(kafka.ports), bootstrap(kafka.tls_ports)
            tls = {
                "bootstrap_servers": secured, "security_protocol": "SSL", "ssl_context": context,
            }  # fmt: skip
            admin = AdminClient({"bootstrap.servers": plain, "log_level": 0})
            topics = [
                NewTopic("orders", 3, 2),
                NewTopic("payments", 1, 2),
                NewTopic("events", 1, 1),
            ]
            for made in admin.create_topics(topics).values():
                made.result(60)
            asyncio.run(quota(kafka.ports[1]))
            with recorded({*kafka.ports.values(), *kafka.tls_ports.values()}, part):
                shop(tls)
                asyncio.run(billing(secured, context))
                ledger(plain)
                shipping(tls)
                analytics(plain)
                loader(plain)
                asyncio.run(operator(kafka.ports))
                impatient(kafka.ports[2])
        data = without_folder(part.read_bytes(), folder)
        CAPTURE.write_bytes(zstandard.compress(_with_secrets(data, log.read_bytes()), level=19))
    print(f"{CAPTURE.name}: {CAPTURE.stat().st_size} bytes")


def _with_secrets(pcap: bytes, secrets: bytes) -> bytes:
    """A pcapng that has nothing of this machine but packets."""
    nanoseconds = unpack_from("<I", pcap)[0] == 0xA1B23C4D
    (link_type,) = unpack_from("<I", pcap, 20)
    made, at = [pcapng_section(), pcapng_interface(link_type), pcapng_secrets(secrets)], 24
    while at < len(pcap):
        seconds, rest, captured, _ = unpack_from("<IIII", pcap, at)
        time_ns = seconds * 10**9 + rest * (1 if nanoseconds else 1000)
        made.append(pcapng_packet(time_ns, pcap[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return b"".join(made)


if __name__ == "__main__":
    main()
