"""Reassignments by kafka-python, whose admin client has them; the others watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockbroker.running.fixture import MockKafka
from tests.support.toolchain import require_module

__all__ = ["reassign"]


def reassign(mock: MockKafka, replicas: Sequence[int]) -> None:
    """Reassign foo-0."""
    kafka: Any = require_module("kafka")
    admin = kafka.KafkaAdminClient(bootstrap_servers=mock.bootstrap)
    admin.alter_partition_reassignments({kafka.TopicPartition("foo", 0): list(replicas)})
    admin.close()
