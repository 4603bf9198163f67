"""Everyday traffic of kafka-python: ``BOOTSTRAP PREFIX [MECHANISM USER PASSWORD]``."""

import sys
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic

from tests.captures.clients.common import CODECS, RECORDS, attempt, report, value


def main() -> None:
    bootstrap, prefix, *login = sys.argv[1:]
    common: dict[str, Any] = {"bootstrap_servers": bootstrap, "client_id": "kafka-python"}
    if login:
        mechanism, user, password = login
        common |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
        attempt("list", lambda: KafkaAdminClient(**common).list_topics())
    else:
        everyday(common, f"{prefix}-kafka-python")
    report("kafka-python", kafka.__version__)


def everyday(common: dict[str, Any], topic: str) -> None:
    admin = KafkaAdminClient(**common)
    attempt("create", lambda: admin.create_topics([NewTopic(topic, 2, 2)]))
    for codec in CODECS:
        attempt(codec, lambda codec=codec: produce(common, topic, codec))  # type: ignore[misc]
    attempt("transactions", lambda: transactions(common, topic))
    attempt("consume", lambda: consume(common, topic))
    attempt("groups", admin.list_groups)
    attempt("drop", lambda: admin.delete_topics([f"{topic}-unknown"]))
    admin.close()


def produce(common: dict[str, Any], topic: str, codec: str) -> None:
    kind = None if codec == "none" else codec
    producer = KafkaProducer(**common, compression_type=kind, linger_ms=20)
    for number in range(RECORDS):
        producer.send(topic, value(number).encode(), f"key-{number}".encode())
    producer.flush()
    producer.close()


def transactions(common: dict[str, Any], topic: str) -> None:
    producer = KafkaProducer(**common, transactional_id=f"{topic}-tx")
    producer.init_transactions()
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.send(topic, b"in a transaction", partition=0)
        producer.flush()
        ends()
    producer.close()


def consume(common: dict[str, Any], topic: str) -> None:
    consumer = KafkaConsumer(
        topic, **common, group_id=f"{topic}-group", auto_offset_reset="earliest",
        consumer_timeout_ms=4000, fetch_max_wait_ms=100, isolation_level="read_committed",
    )  # fmt: skip
    for count, _ in enumerate(consumer, 1):
        if count >= RECORDS * 3:
            break
    consumer.commit()
    consumer.close()


if __name__ == "__main__":
    main()
