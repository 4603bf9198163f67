"""Journals and captures in which every string that a peer chooses is hostile."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kproto
from kproto.capture import JournalCapture
from kproto.codec.registry import schema_of
from kproto.journal import ClientSoftware, Entry, JournalWriter
from kproto.messages import ApiVersionsRequest, MetadataRequest, ProduceRequest
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.records import Record, build_batch
from kproto.reference.random_trees import random_tree
from tests.cli.hostile import FILE_NAME, FORMULA, JSON, WIRE
from tests.support.instances import to_instance

__all__ = ["write_traffic"]

_KAFKA = kproto.dialect("kafka")
_NO_EXCHANGE = (7, 17, 36)  # ControlledShutdown has headers of its own; SASL has states


def write_traffic(folder: Path) -> dict[str, Path]:
    """Write a journal, a capture and a journal that cannot be read, with hostile names; return them
    by kind."""
    entries = list(_entries())
    journal = folder / f"{FILE_NAME}.jsonl"
    with journal.open("w", encoding="utf-8") as file:
        writer = JournalWriter(file)
        for entry in entries:
            writer.write(entry)
    capture = folder / f"{FILE_NAME}.pcapng"
    packets = JournalCapture()
    capture.write_bytes(packets.start() + b"".join(map(packets.add, entries)))
    broken = folder / f"{FILE_NAME}-broken.jsonl"
    broken.write_text(json.dumps({"sequence": JSON, JSON: 1}) + "\n")
    return {"journal": journal, "capture": capture, "broken": broken}


def _entries() -> Iterator[Entry]:
    rng = random.Random(455)
    requests: list[tuple[Any, int, Any]] = [
        (ApiVersionsRequest(client_software_name="soft", client_software_version="1"), 3, None),
        (MetadataRequest(), 9, None),
        (_produce(), 9, None),
    ]
    for key, api in _KAFKA.apis.items():
        if key not in _NO_EXCHANGE:
            version = api.request.VALID_VERSIONS.highest
            bodies = [_hostile(cls, version, rng) for cls in (api.request, api.response)]
            requests.append((bodies[0], version, bodies[1]))
    sequence = 0
    for number, (body, version, answer) in enumerate(requests, 1):
        client_id = (WIRE, FORMULA, "-1+cmd|' /C calc'!A0")[number % 3]
        common = {"broker_id": 1, "connection_id": 1, "peer": WIRE, "client_id": client_id,
                  "api_key": body.API_KEY, "api_version": version, "correlation_id": number,
                  "client_software": ClientSoftware(WIRE, WIRE)}  # fmt: skip
        frame = _KAFKA.encode_request(
            body, api_version=version, correlation_id=number, client_id=client_id
        )
        sequence += 1
        yield Entry(sequence, 10**18 + 1000 * sequence, direction="request", raw=frame, **common)
        if answer is not None:
            frame = _KAFKA.encode_response(answer, api_version=version, correlation_id=number)
            sequence += 1
            yield Entry(
                sequence, 10**18 + 1000 * sequence, direction="response", raw=frame, **common
            )
    yield Entry(sequence + 1, 10**18 + 1000 * (sequence + 1), 1, 1, "event", WIRE,
                event="malformed", note=WIRE)  # fmt: skip


def _hostile(cls: Any, version: int, rng: random.Random) -> Any:
    schema = schema_of(cls)
    tree = random_tree(schema, version, rng, size=20, richness=1.0, unknown_tags=False)
    return to_instance(cls, _replaced(tree), schema)


def _replaced(value: Any) -> Any:
    match value:
        case str():
            return value and WIRE  # a field that the version lacks is empty
        case dict():
            return {key: _replaced(each) for key, each in value.items()}
        case list():
            return [_replaced(each) for each in value]
    return value


def _produce() -> ProduceRequest:
    text = WIRE.encode()
    batch = build_batch([Record(timestamp=0, key=text, value=text, headers=[(WIRE, text)])])
    data = PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        transactional_id=WIRE,
        acks=1,
        topic_data=[TopicProduceData(name=WIRE, partition_data=[data])],
    )
