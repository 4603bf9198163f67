"""Everyday traffic of aiokafka: ``BOOTSTRAP PREFIX [MECHANISM USER PASSWORD]``."""

import asyncio
import sys
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.captures.clients.common import CODECS, RECORDS, attempt, report, value


def main() -> None:
    bootstrap, prefix, *login = sys.argv[1:]
    common: dict[str, Any] = {"bootstrap_servers": bootstrap, "client_id": "aiokafka"}
    topic = f"{prefix}-aiokafka"
    if login:
        mechanism, user, password = login
        common |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
        attempt("list", lambda: asyncio.run(listing(common)))
    else:
        attempt("create", lambda: asyncio.run(create(common, topic)))
        for codec in CODECS:
            attempt(codec, lambda codec=codec: asyncio.run(produce(common, topic, codec)))  # type: ignore[misc]
        attempt("transactions", lambda: asyncio.run(transactions(common, topic)))
        attempt("consume", lambda: asyncio.run(consume(common, topic)))
    report("aiokafka", aiokafka.__version__)


async def listing(common: dict[str, Any]) -> None:
    admin = AIOKafkaAdminClient(**common)
    await admin.start()
    try:
        await admin.list_topics()
    finally:
        await admin.close()


async def create(common: dict[str, Any], topic: str) -> None:
    admin = AIOKafkaAdminClient(**common)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 2, 2)])
    finally:
        await admin.close()


async def produce(common: dict[str, Any], topic: str, codec: str) -> None:
    kind = None if codec == "none" else codec
    async with AIOKafkaProducer(**common, compression_type=kind, linger_ms=20) as producer:
        sent = [
            await producer.send(topic, value(number).encode(), headers=[("codec", codec.encode())])
            for number in range(RECORDS)
        ]
        await asyncio.gather(*sent)


async def transactions(common: dict[str, Any], topic: str) -> None:
    async with AIOKafkaProducer(**common, transactional_id=f"{topic}-tx") as producer:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"in a transaction", partition=0)
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"in vain", partition=0)
        await producer.abort_transaction()


async def consume(common: dict[str, Any], topic: str) -> None:
    consumer = AIOKafkaConsumer(
        topic, **common, group_id=f"{topic}-group", auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    )  # fmt: skip
    await consumer.start()
    try:
        found = 0
        for _ in range(40):
            batches = await consumer.getmany(timeout_ms=250)
            found += sum(map(len, batches.values()))
            if found >= RECORDS * 3:
                break
        await consumer.commit()
    finally:
        await consumer.stop()


if __name__ == "__main__":
    main()
