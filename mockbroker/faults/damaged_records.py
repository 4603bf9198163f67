"""Damage to the record batches of a response: a rule's ``corrupt``."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import Struct
from mockbroker.apis.common.request_entities import (
    Named,
    Selection,
    Topics,
    fields_of,
    partition_of,
    topic_of,
)
from mockbroker.errors import ClusterError
from mockbroker.simulation.log.batches.batch_header import HEADER_SIZE, read_header
from mockbroker.simulation.log.batches.batch_storage import StoredBatch
from mockbroker.simulation.log.batches.corruption import damaged

__all__ = ["Corruption", "damage"]

Corruption: TypeAlias = Literal["bit", "crc", "count", "codec", "short"]
"""The kinds of damage: those of the operation ``corrupt-batch``, and ``short``, which cuts the last
batch off."""

_MAGIC_2: Final = 2
_MAGIC_AT: Final = 16


def damage(
    body: Message, version: int, how: Corruption, topics: Topics, selection: Selection
) -> tuple[int, str | None]:
    """Damage the first batch of every selected partition, with ``short`` the last one.

    Returns how many batches were damaged, and why another could not be.
    """
    damager = _Damager(version, how, topics, selection)
    damager.walk(body, schema_of(type(body)).root, Named(None, None))
    return damager.count, damager.problem


class _Damager:
    def __init__(self, version: int, how: Corruption, topics: Topics, selection: Selection) -> None:
        self.count = 0
        self.problem: str | None = None
        self._version = version
        self._how = how
        self._topics = topics
        self._selection = selection

    def walk(self, holder: Any, struct: Struct, named: Named) -> None:
        version = self._version
        named = Named(
            topic_of(holder, struct, version, self._topics) or named.topic,
            partition_of(holder, struct, version) if named.partition is None else named.partition,
        )
        for field in fields_of(struct, version):
            value, inner = getattr(holder, field.python_name), field.type.inner_struct
            if inner is not None and value is not None:
                for each in value if field.type.kind == "array" else (value,):
                    self.walk(each, inner, named)
            elif field.type.kind == "records" and value and self._selection.takes(named):
                setattr(holder, field.python_name, self._damaged(bytes(value)))

    def _damaged(self, data: bytes) -> bytes:
        if self._how == "short":
            self.count += 1
            return data[: -max(_last_size(data) // 2, 1)]
        if len(data) < HEADER_SIZE or data[_MAGIC_AT] != _MAGIC_2:
            self.problem = "the first batch is not of magic 2"
            return data
        header = read_header(data, 0)
        try:
            changed = damaged(StoredBatch(header, memoryview(data)[: header.size]), self._how)
        except ClusterError as error:
            self.problem = str(error)
            return data
        self.count += 1
        return changed + data[header.size :]


def _last_size(data: bytes) -> int:
    """The bytes of the last batch, or of what there is of it."""
    at = 0
    while True:
        size = int.from_bytes(data[at + 8 : at + 12], "big", signed=True) + 12
        if size <= 12 or at + size >= len(data):
            return len(data) - at
        at += size
