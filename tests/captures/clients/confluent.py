"""Everyday traffic of confluent-kafka (librdkafka): ``BOOTSTRAP PREFIX [MECHANISM USER PASSWORD]``.

With a mechanism it only authenticates and asks for the cluster; ``TLS`` is taken for one, too.
"""

import sys
from typing import Any

import confluent_kafka
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from tests.captures.clients.common import CODECS, RECORDS, SECONDS, attempt, report, value

PARTITIONS = 3


def main() -> None:
    bootstrap, prefix, *login = sys.argv[1:]
    common: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "confluent",
        "log_level": 0,
    }
    if login:
        authenticate(common, *login)
    else:
        everyday(common, prefix)
    report("confluent-kafka", f"{confluent_kafka.__version__}/{confluent_kafka.libversion()[0]}")


def authenticate(common: dict[str, Any], mechanism: str, user: str, password: str) -> None:
    if mechanism == "TLS":
        common |= {"security.protocol": "SSL", "enable.ssl.certificate.verification": False}
    else:
        common |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    attempt("list", lambda: AdminClient(common).list_topics(timeout=SECONDS))


def everyday(common: dict[str, Any], prefix: str) -> None:
    admin = AdminClient(common)
    topic = f"{prefix}-confluent"
    attempt("create", lambda: every(admin.create_topics([NewTopic(topic, PARTITIONS, 2)])))
    for codec in CODECS:
        produce(common, topic, codec)
    produce({**common, "acks": 0}, topic, "none")
    attempt("transactions", lambda: transactions(common, topic))
    attempt("classic", lambda: consume(common, topic, {}))
    attempt("consumer", lambda: consume(common, topic, {"group.protocol": "consumer"}))
    administer(admin, topic)


def produce(common: dict[str, Any], topic: str, codec: str) -> None:
    producer = Producer({**common, "compression.type": codec, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(topic, value(number), f"key-{number}", headers={"codec": codec.encode()})
    producer.flush(SECONDS)


def transactions(common: dict[str, Any], topic: str) -> None:
    producer = Producer({**common, "transactional.id": f"{topic}-tx"})
    consumer = Consumer({**common, "group.id": f"{topic}-tx"})
    producer.init_transactions(SECONDS)
    for commits in (True, False):
        producer.begin_transaction()
        producer.produce(topic, value(0), "in a transaction", partition=0)
        if commits:
            offsets = [TopicPartition(topic, 0, 1)]
            producer.send_offsets_to_transaction(
                offsets, consumer.consumer_group_metadata(), SECONDS
            )
            producer.commit_transaction(SECONDS)
        else:
            producer.flush(SECONDS)
            producer.abort_transaction(SECONDS)
    consumer.close()


def consume(common: dict[str, Any], topic: str, more: dict[str, Any]) -> None:
    group = f"{topic}-{more.get('group.protocol', 'classic')}"
    consumer = Consumer(
        {**common, "group.id": group, "auto.offset.reset": "earliest", **more,
         "fetch.wait.max.ms": 100}
    )  # fmt: skip
    consumer.subscribe([topic])
    found = 0
    for _ in range(60):
        found += len(consumer.consume(RECORDS, 0.5))
        if found >= RECORDS * len(CODECS):
            break
    consumer.commit(asynchronous=False)
    consumer.close()


def administer(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    change = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    first = TopicPartition(topic, 0)
    rule = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:nobody", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip
    group = f"{topic}-classic"
    attempt("cluster", lambda: admin.describe_cluster().result(SECONDS))
    attempt("configs", lambda: every(admin.describe_configs([resource])))
    attempt("change", lambda: every(admin.incremental_alter_configs([changed])))
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    attempt("offsets", lambda: every(admin.list_offsets({first: latest})))
    attempt("partitions", lambda: every(admin.create_partitions([NewPartitions(topic, 4)])))
    attempt("records", lambda: every(admin.delete_records([TopicPartition(topic, 0, 1)])))
    attempt("groups", lambda: admin.list_consumer_groups().result(SECONDS))
    attempt("group", lambda: every(admin.describe_consumer_groups([group])))
    asked = [ConsumerGroupTopicPartitions(group)]
    attempt("committed", lambda: every(admin.list_consumer_group_offsets(asked)))
    attempt("acls", lambda: every(admin.create_acls([rule])))
    attempt("drop group", lambda: every(admin.delete_consumer_groups([group])))
    attempt("drop", lambda: every(admin.delete_topics([f"{topic}-unknown"])))


def every(futures: dict[Any, Any]) -> None:
    """Wait for all of them; a refusal is an answer like any other."""
    for future in futures.values():
        try:
            future.result(SECONDS)
        except KafkaException as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
