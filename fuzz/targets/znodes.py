"""Any bytes as the data of any of Kafka's znodes.

**Holds:** each reader returns or raises MalformedZnodeError, whose text is one line that names the
path. Znodes that have a writer are written and parse to an equal value, and writing is stable. As
in Kafka, a topic's partitions without replicas are not written, nor is the version of a
reassignment of KIP-236, which is 1. At most 1000 bytes per byte of input are reserved.

**Accepted:** MalformedZnodeError from readers. Nothing from writers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from fuzz import bounds
from fuzz.mutations import Mutate, with_words
from kproto.znodes import MalformedZnodeError, kafka_znodes, plan_znodes, request_znodes

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 1000
PATH: Final = "/a/path"


class _Kind(NamedTuple):
    read: Callable[[str, bytes], Any]
    write: Callable[[Any], bytes] | None
    example: bytes


_TOPIC: Final = kafka_znodes.TopicAssignment(
    partitions={0: [1, 2, 3], 11: [2]}, adding_replicas={0: [3]}, topic_id="AAAAAAAAAAAAAAAAAAAAAQ"
)
_STATE: Final = kafka_znodes.PartitionState(
    leader=1, leader_epoch=3, controller_epoch=2, isr=(1, 2), target_replicas=(2, 3)
)
_BROKER: Final = kafka_znodes.BrokerRegistration(
    endpoints=(kafka_znodes.Endpoint("EXTERNAL", "::1", 9092, "SASL_SSL"),), timestamp=7, rack="r"
)

_KINDS: Final = (
    _Kind(kafka_znodes.decode_broker, kafka_znodes.encode_broker,
          kafka_znodes.encode_broker(_BROKER)),
    _Kind(kafka_znodes.decode_topic, kafka_znodes.encode_topic, kafka_znodes.encode_topic(_TOPIC)),
    _Kind(kafka_znodes.decode_partition_state, kafka_znodes.encode_partition_state,
          kafka_znodes.encode_partition_state(_STATE)),
    _Kind(kafka_znodes.decode_controller, lambda broker: kafka_znodes.encode_controller(broker, 5),
          kafka_znodes.encode_controller(1, 5)),
    _Kind(kafka_znodes.decode_controller_epoch, kafka_znodes.encode_controller_epoch, b"17"),
    _Kind(kafka_znodes.decode_config, kafka_znodes.encode_config,
          kafka_znodes.encode_config({"cleanup.policy": "compact"})),
    _Kind(kafka_znodes.decode_config_change, None,
          kafka_znodes.encode_config_change(2, "orders")),
    _Kind(plan_znodes.decode_reassign_partitions, plan_znodes.encode_reassign_partitions,
          plan_znodes.encode_reassign_partitions(
              {("t", 0): plan_znodes.PlannedReplicas([1, 2], [3])})),
    _Kind(plan_znodes.decode_preferred_replica_election,
          plan_znodes.encode_preferred_replica_election,
          plan_znodes.encode_preferred_replica_election([("t", 0), ("u", 1)])),
    _Kind(request_znodes.decode_request, request_znodes.encode_request,
          request_znodes.encode_request(
              request_znodes.ReassignmentRequest({("t", 0): [1, 2]}, True))),
    _Kind(request_znodes.decode_reassignment, request_znodes.encode_reassignment,
          request_znodes.encode_reassignment(request_znodes.RequestedReassignment((1, 2), 2))),
)  # fmt: skip
"""Selected by the first byte of the input; new ones are added at the end."""

_WORDS: Final = (
    b'{"version":1,', b'"partitions":{', b'"0":[1,2]', b'"replicas":[', b"2147483648", b"-1",
    b"null", b'"isr":[]', b"[" * 1500, b'"\\ud800"', b'"\\u0000"', b"1e400", b"0.5", b"007",
    b'"2147483648":[1]', b"\xff", b"\xef\xbb\xbf", b"{}", b"[]", b'"a","a"',
    b'"listener_security_protocol_map":{', b'"endpoints":["A://[::1]:1"]', b'"legacy":true',
    b"true", b",", b":",
)  # fmt: skip


def check(data: bytes) -> None:
    kind = _KINDS[(data[0] if data else 0) % len(_KINDS)]
    text = data[1:]

    def read() -> Any:
        try:
            return kind.read(PATH, text)
        except MalformedZnodeError as error:
            assert PATH in str(error)
            assert "\n" not in str(error)
            return error

    found = bounds.allocating(read, text, a_byte=A_BYTE)
    if isinstance(found, MalformedZnodeError) or kind.write is None:
        return
    found = _written(found)
    written = kind.write(found)
    assert kind.read(PATH, written) == found, (written, found)
    assert kind.write(kind.read(PATH, written)) == written


def _written(found: Any) -> Any:
    """Return the value without what writers leave out."""
    if isinstance(found, request_znodes.RequestedReassignment):
        return msgspec.structs.replace(found, version=1)
    if isinstance(found, kafka_znodes.TopicAssignment):
        maps = {
            name: {index: ids for index, ids in getattr(found, name).items() if ids}
            for name in ("partitions", "adding_replicas", "removing_replicas")
        }
        return msgspec.structs.replace(found, **maps)
    return found


def seeds() -> Iterator[bytes]:
    for number, kind in enumerate(_KINDS):
        assert not isinstance(kind.read(PATH, kind.example), MalformedZnodeError)
        yield bytes((number,)) + kind.example


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    return data[:1] + with_words(data[1:], _WORDS, rng)
