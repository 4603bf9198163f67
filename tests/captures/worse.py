"""Captures of real traffic made worse: packets lost, repeated, out of order."""

import random
from collections import defaultdict
from struct import pack, unpack_from

__all__ = ["HEADER", "RECORD", "made_worse", "records_of"]

HEADER, RECORD = 24, 16
_NANOSECONDS = bytes.fromhex("4d3cb2a1")
ETHERNET, IP = 14, 20


def made_worse(
    capture: bytes, rng: random.Random, *, lost: float, repeated: float, late: float = 0.0
) -> bytes:
    """A classic pcap of IPv4 with that share of the packets with payload lost, written twice, or
    written a few places later. What is written twice has an identification and a time of its own,
    or it would be a copy of the packet instead of sent again. The packets that open and close
    connections stay as they are, and none comes before a direction's first, which is not lost, or
    after its last."""
    second = 10**9 if capture[:4] == _NANOSECONDS else 10**6
    original = records_of(capture)
    first, last = _first_and_last(original)
    records: list[tuple[float, bytes]] = []
    for number, record in enumerate(original):
        if not _has_payload(record):
            records.append((number, record))
        elif number in first or rng.random() >= lost:
            place = float(number)
            if number not in first | last and rng.random() < late:
                place += rng.choice((1.5, 2.5, 3.5))
            records.append((place, record))
            if rng.random() < repeated:
                records.append((place + rng.choice((0.5, 1.5, 4.5)), _sent_again(record, second)))
    records.sort(key=lambda each: each[0])
    return capture[:HEADER] + b"".join(record for _, record in records)


def _sent_again(record: bytes, second: int) -> bytes:
    """The record, a millisecond later and with another identification. ``second`` is how many parts
    one has."""
    seconds, part = unpack_from("<II", record)
    carry, part = divmod(part + second // 1000, second)
    again = bytearray(pack("<II", seconds + carry, part) + record[8:])
    again[RECORD + ETHERNET + 4] ^= 0x80
    return bytes(again)


def records_of(capture: bytes) -> list[bytes]:
    """Each with its header."""
    records, at = [], HEADER
    while at < len(capture):
        (size,) = unpack_from("<I", capture, at + 8)
        records.append(capture[at : at + RECORD + size])
        at += RECORD + size
    return records


def _first_and_last(records: list[bytes]) -> tuple[set[int], set[int]]:
    """The numbers of the packets that begin, and that end, what a direction says: its last four,
    for none is moved further than that."""
    ports = RECORD + ETHERNET + IP
    numbers: dict[bytes, list[int]] = defaultdict(list)
    for number, record in enumerate(records):
        if _has_payload(record):
            numbers[record[ports : ports + 4]].append(number)
    return (
        {each[0] for each in numbers.values()},
        {number for each in numbers.values() for number in each[-4:]},
    )


def _has_payload(record: bytes) -> bool:
    tcp = record[RECORD + ETHERNET + IP :]
    return not tcp[13] & 7 and len(tcp) > (tcp[12] >> 4) * 4
