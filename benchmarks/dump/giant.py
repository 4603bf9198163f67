"""Write a capture of gigabytes in seconds, by repeating packets with new numbers.

A block is eight Produce requests with their responses on one connection. Each copy of it continues
the times, sequence numbers, acknowledgements and correlation ids. TCP checksums are not updated
(network cards compute them after the capture, so readers do not rely on them). The first client's
sequence numbers begin high, so that they wrap in a capture of gigabytes.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.dump.synthetic import BEGAN_NS, BIG, PORT, SEGMENT, STEP_NS, exchanges
from kproto.capture import Conversation
from kproto.capture.container import ETHERNET, pcap_header, pcap_record
from kproto.capture.packets import ethernet_frame

__all__ = ["EXCHANGES_A_BLOCK", "write"]

EXCHANGES_A_BLOCK = 8
COPIES = 32
"""Written at a time, of a block of one connection."""

_RECORD, _LINK, _IP, _TCP = 16, 14, 20, 20
_SEQUENCE = _RECORD + _LINK + _IP + 4
_PAYLOAD = _RECORD + _LINK + _IP + _TCP
_CORRELATION_ID = _PAYLOAD + 4 + 4
"""Of a request's first packet; a response's has it 4 earlier."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Block(NamedTuple):
    """The bytes, and where numbers of four bytes stand: little-endian times, big-endian others.
    ``turns`` are what a sequence number or acknowledgement grows by from block to block."""

    data: bytes
    times: Numbers
    sequences: Numbers
    turns: Numbers
    correlation_ids: Numbers
    records: int


def write(path: Path, size: int, connections: int = 1) -> dict[str, Any]:
    """At least ``size`` bytes; what is in them."""
    talks = [
        Conversation(
            (f"10.1.0.{2 + number}", 50_000 + number), ("10.1.0.1", PORT),
            client_isn=(3 << 30) + (number << 16), server_isn=number << 8, segment_size=SEGMENT,
        )
        for number in range(connections)
    ]  # fmt: skip
    opened = [
        pcap_record(BEGAN_NS, ethernet_frame(packet)) for talk in talks for packet in talk.open()
    ]
    blocks = [_block(talk) for talk in talks]
    length = sum(len(block.data) for block in blocks)
    copies = max(1, COPIES // connections)
    rounds = -(-size // (length * copies)) * copies
    with path.open("wb") as file:
        file.write(pcap_header(ETHERNET) + b"".join(opened))
        packets = 0
        for first in range(0, rounds, copies):
            packets = _put(file, blocks, range(first, first + copies), packets)
    exchanged = rounds * EXCHANGES_A_BLOCK * connections
    return {
        "ports": [PORT],
        "frames": 2 * exchanged,
        "records": rounds * sum(block.records for block in blocks),
    }


def _put(file: Any, blocks: list[Block], numbers: range, packets: int) -> int:
    """Copies of every block, in turn; how many packets there are by then."""
    parts: list[Bytes] = []
    each_round = sum(len(block.times) for block in blocks)
    before = 0
    for block in blocks:
        copies = np.array(numbers, np.int64)[:, None]
        data = np.tile(np.frombuffer(block.data, np.uint8), (len(numbers), 1))
        turn = copies - numbers.start
        number = packets + turn * each_round + before + np.arange(len(block.times))
        nanoseconds = BEGAN_NS + number * STEP_NS
        _set(data, block.times, nanoseconds // 10**9, "<u4")
        _set(data, block.times + 4, nanoseconds % 10**9 // 1000, "<u4")
        _add(data, block.sequences, copies * block.turns)
        _add(data, block.correlation_ids, copies * EXCHANGES_A_BLOCK)
        parts.append(data)
        before += len(block.times)
    file.write(np.concatenate(parts, axis=1).tobytes())
    return packets + len(numbers) * each_round


def _set(data: Bytes, places: Numbers, values: Numbers, kind: str) -> None:
    shape = (*values.shape, 4)
    data[:, places[:, None] + np.arange(4)] = values.astype(kind).view(np.uint8).reshape(shape)


def _add(data: Bytes, places: Numbers, values: Numbers) -> None:
    """To big-endian numbers, modulo 2**32."""
    found = data[:, places[:, None] + np.arange(4)]
    numbers = np.ascontiguousarray(found).view(">u4")[..., 0].astype(np.int64) + values
    _set(data, places, numbers % 2**32, ">u4")


def _block(talk: Conversation) -> Block:
    shape = BIG._replace(kinds=("produce",), connections=1)
    data = bytearray()
    times: list[int] = []
    sides: list[bool] = []
    ids: list[int] = []
    grown = [0, 0]
    records = 0
    for exchange in islice(exchanges(shape), EXCHANGES_A_BLOCK):
        records += exchange.records
        for from_server in (False, True):
            frame = exchange.response if from_server else exchange.request
            ids.append(len(data) + _CORRELATION_ID - 4 * from_server)
            grown[from_server] += len(frame)
            acknowledged = talk.send(frame, from_server=from_server)
            for side, packet in (
                *((from_server, each) for each in acknowledged),
                (not from_server, talk.acknowledge(from_server=not from_server)),
            ):
                times.append(len(data))
                sides.append(side)
                data += pcap_record(0, ethernet_frame(packet))
    places = np.array(times, np.int64) + _SEQUENCE
    turns = np.array([(grown[side], grown[not side]) for side in sides], np.int64)
    return Block(
        bytes(data), np.array(times, np.int64),
        np.stack([places, places + 4], axis=1).reshape(-1), turns.reshape(-1),
        np.array(ids, np.int64), records,
    )  # fmt: skip
