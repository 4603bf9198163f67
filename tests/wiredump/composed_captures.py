"""Captures in which several things happened at a time, with the truth about them.

A seed gives one to four conversations of random APIs, among them some with data, each perhaps
behind a proxy's header. Packets are sent again, reordered, lost, missing at either end, or of one
direction, and a snap length may cut them. Then a second point of capture may add a copy of each
packet: on another interface, at the other end of the network, in a tunnel, or with other addresses.
Last, all may travel in a tunnel.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address
from struct import pack, unpack_from
from typing import Final, NamedTuple

from kproto.capture.packets import SYN
from tests.wiredump.known_captures import (
    BEGINNINGS,
    START_NS,
    Fact,
    Line,
    Packet,
    converse,
    covered,
    file_of,
    in_vxlan,
    is_in,
    lossy,
    reordered,
    sent_again,
)
from tests.wiredump.talk import Said, say
from tests.wiredump.test_salvage import random_talk

__all__ = ["Composed", "composed"]

_HEADERS: Final = 54
_HOP_NS: Final = 10_000


class Composed(NamedTuple):
    """``plain`` has the packets of the first point of capture without a tunnel, ``capture`` has all
    of them. ``ends`` has, for each connection of ``plain``, its client, its broker and the client
    that a proxy's header names.

    ``truth`` and ``sure`` are as in ``Known``. ``is_whole``: every byte was captured, and in order.
    ``payload`` counts the captured bytes of ``plain``, ``distinct`` those without repeats;
    ``copied`` those of copies. ``readable`` counts those of frames that are there as a whole, but
    for connections from the middle, whose clients' ports are ``middle``. ``twins`` is whether
    copies have other addresses."""

    what: str
    plain: bytes
    capture: bytes
    ends: Counter[tuple[str, str, str]]
    truth: Counter[Fact]
    sure: Counter[Fact]
    is_whole: bool
    payload: int
    distinct: int
    copied: int
    readable: int
    middle: frozenset[int]
    twins: bool


# ---- what happens to the packets of a connection --------------------------------------------

_Change = Callable[[random.Random, list[Packet]], list[Packet]]


def _without_the_first(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    return packets[rng.randint(1, max(1, len(packets) // 2)) :]


def _without_the_last(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    return packets[: rng.randint(1, len(packets))] if packets else packets


def _of_one_end(end: int) -> _Change:
    return lambda _, packets: [each for each in packets if each.end == end]


_HARMLESS: Final[list[tuple[str, float, _Change]]] = [
    ("sent again", 0.3, sent_again),
    ("reordered", 0.2, reordered),
]
_HARMFUL: Final[list[tuple[str, float, _Change]]] = [
    ("late start", 0.3, _without_the_first),
    ("early end", 0.2, _without_the_last),
    ("lossy", 0.3, lossy),
    ("requests alone", 0.1, _of_one_end(0)),
    ("responses alone", 0.1, _of_one_end(1)),
]

# ---- what a second point of capture adds ----------------------------------------------------

_Addresses = tuple[bytes, bytes]
"""An address and a port, as in headers."""


def _end(address: str, port: int) -> _Addresses:
    return IPv4Address(address).packed, pack(">H", port)


def _readdressed(frame: bytes, ends: tuple[_Addresses, _Addresses]) -> bytes:
    """Replace the source and the destination."""
    (source, source_port), (target, target_port) = ends
    made = bytearray(frame)
    made[26:34] = source + target
    made[34:38] = source_port + target_port
    return bytes(made)


def _there(client: bool, broker: bool) -> Callable[[random.Random, Packet], Packet]:
    """Translate the address of the client, of the broker or of both."""

    def translate(_: random.Random, each: Packet) -> Packet:
        source, target = each.frame[26:30], each.frame[30:34]
        ports = each.frame[34:36], each.frame[36:38]
        ends = [(source, ports[0]), (target, ports[1])]
        if each.end == 1:
            ends.reverse()
        if client:
            (number,) = unpack_from(">H", ends[0][1])
            ends[0] = _end("10.9.0.1", number - 10_000)
        if broker:
            ends[1] = _end("10.9.0.2", 19092)
        if each.end == 1:
            ends.reverse()
        return each._replace(frame=_readdressed(each.frame, (ends[0], ends[1])))

    return translate


def _same(_: random.Random, each: Packet) -> Packet:
    return each


def _tagged(rng: random.Random, each: Packet) -> Packet:
    if rng.random() < 0.5:
        return each
    return each._replace(frame=each.frame[:12] + b"\x81\0\0\7" + each.frame[12:])


def _tunnelled(rng: random.Random, each: Packet) -> Packet:
    (around,) = in_vxlan(rng, [each])
    return around._replace(captured=around.captured + len(around.frame) - len(each.frame))


_COPIES: Final[dict[str, Callable[[random.Random, Packet], Packet]]] = {
    "copied": _same,
    "copied with tags": _tagged,
    "copied in VXLAN": _tunnelled,
    "destination translated": _there(False, True),
    "source translated": _there(True, False),
    "both translated": _there(True, True),
}


def _with_copies(rng: random.Random, kind: str, packets: list[Packet]) -> list[Packet]:
    """Add the copies. The broker's packets pass the second point first, but where that would
    change which of two packets is the copy."""
    change = _COPIES[kind]
    out = []
    for each in packets:
        delay_ns = -_HOP_NS if each.end and "translated" in kind else _HOP_NS
        there = change(rng, each)
        out += [each, there._replace(time_ns=each.time_ns + delay_ns, interface=1)]
    return sorted(out, key=lambda each: each.time_ns)


# ---- what all of it travels in --------------------------------------------------------------


def _around(header: bytes, at: int, protocol: int | None = None) -> _Change:
    """Insert a header, at 12 within Ethernet's and at 14 behind it and its tag; ``protocol`` is
    that of an outer IP header."""

    def wrapped(each: Packet) -> Packet:
        place = at + 4 * (at == 14 and each.frame[12:14] == b"\x81\0")
        inside = header + each.frame[place:]
        if protocol is not None:
            size = 20 + len(inside)
            outer = pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, protocol, 0) + bytes(8)
            inside = outer + inside
        frame = each.frame[:place] + inside
        return each._replace(frame=frame, captured=each.captured + len(frame) - len(each.frame))

    return lambda _, packets: [wrapped(each) for each in packets]


def _as_is(_: random.Random, packets: list[Packet]) -> list[Packet]:
    return packets


_TUNNELS: Final[dict[str, _Change]] = {
    "no tunnel": _as_is,
    "VLAN": _around(b"\x81\0\0\5", 12),
    "VXLAN": lambda rng, packets: [_tunnelled(rng, each) for each in packets],
    "GRE": _around(b"\0\0\x08\0", 14, 47),
    "IP in IP": _around(b"", 14, 4),
}

# ---- the captures ---------------------------------------------------------------------------


def _said(rng: random.Random) -> list[Said]:
    first = rng.randint(1, 2**30)
    said = []
    for number in range(first, first + rng.randint(3, 10)):
        each = say(rng, number, client_id="c")
        if rng.random() < 0.3:
            talk = random_talk(rng, number, most=40)
            key, version = unpack_from(">hh", talk.request, 4)
            each = Said(key, version, number, talk.request, talk.response)
        said.append(each)
    return said


def _is_syn(each: Packet) -> bool:
    return bool(each.frame[47] & SYN)


def _captured(each: Packet) -> int:
    """How many bytes of its payload a packet has."""
    headers = len(each.frame) - (each.last - each.first)
    return max(0, min(each.captured, len(each.frame)) - headers)


def composed(seed: object) -> Composed:
    """Return the capture of a seed."""
    rng = random.Random(f"{seed} composed")
    harmless = [each for each in _HARMLESS if rng.random() < each[1]]
    harmful = [each for each in _HARMFUL if rng.random() < each[1]] if rng.random() < 0.5 else []
    cut = _HEADERS + rng.choice((40, 40, 100, 600)) if rng.random() < 0.15 else 1 << 20
    copies = rng.choice(["", "", *_COPIES])
    tunnel = rng.choice(["no tunnel", "no tunnel", *_TUNNELS])
    beginnings = ["none", "none", *BEGINNINGS] if cut == 1 << 20 else ["none"]
    packets: list[Packet] = []
    truth, sure = Counter[Fact](), Counter[Fact]()
    ends = Counter[tuple[str, str, str]]()
    payload = distinct = readable = 0
    middle = set()
    names = []
    for number in range(rng.randint(1, 4)):
        beginning = rng.choice(beginnings)
        line = Line(
            rng, rng.choice((9092, 31092)), client_port=50_000 + number, syn=True,
            start_ns=START_NS + number * rng.choice((10**5, 10**7)),
            hosts=(f"10.0.1.{rng.randint(1, 3)}", f"10.0.0.{rng.randint(2, 3)}"),
        )  # fmt: skip
        most = rng.choice((60, 500, 1400, 60_000))
        client, prologue = BEGINNINGS[beginning]
        for end, data in prologue:
            line.send(end, data, most)
        facts = converse(rng, line, _said(rng), most)
        if rng.random() < 0.8:
            line.finish()
        made = line.packets
        done = [beginning]
        for _, _, change in harmless:
            made = change(rng, made)
        for name, _, change in harmful:
            if rng.random() < 0.6:
                made = change(rng, made)
                done.append(name)
        made = [each._replace(captured=cut) for each in made if not (each.again and _is_syn(each))]
        packets += made
        # Nothing waits a second for what was acknowledged.
        kept = [each for each in made if not (each.again and "lossy" in done)]
        seen = [covered(_from_the_first(kept, end), end) for end in (0, 1)]
        distinct += sum(map(_size, seen))
        payload += sum(map(_captured, made))
        for fact, request, response in facts:
            truth[fact] += 1
            if is_in(request, seen[0]):
                there = response is not None and is_in(response, seen[1])
                sure[fact._replace(answered=there)] += 1
                if "late start" in done:
                    continue
                readable += request[1] - request[0]
                readable += response[1] - response[0] if there and response is not None else 0
        if made:
            name, broker = (
                f"{host}:{port}" for host, port in zip(line.hosts, line.ports, strict=True)
            )
            ends[name, broker, client] += 1
        names.append("+".join(done))
        if "late start" in done:
            middle.add(line.ports[0])
    packets.sort(key=lambda each: each.time_ns)
    whole = _with_copies(rng, copies, packets) if copies else packets
    copied = sum(_captured(each) for each in whole if each.interface)
    happened = [name for name, *_ in harmless]
    what = f"{seed}: {' | '.join(names)}; {', '.join(happened)}; snap {cut}; {copies}; {tunnel}"
    return Composed(
        what, file_of(packets), file_of(_TUNNELS[tunnel](rng, whole)), ends, truth, sure,
        not harmful and cut == 1 << 20, payload, distinct, copied, readable, frozenset(middle),
        "translated" in copies,
    )  # fmt: skip


def _from_the_first(packets: list[Packet], end: int) -> list[Packet]:
    """Return one direction with the positions of what was captured. Without a SYN, bytes before the
    first one have no place in the stream."""
    sent = [
        each._replace(last=each.first + _captured(each))
        for each in sorted(packets, key=lambda each: each.time_ns)
        if each.end == end
    ]
    if sent and _is_syn(sent[0]):
        return sent
    base = next((each.first for each in sent if each.last > each.first), 0)
    return [each for each in sent if each.last > base and each.first >= base]


def _size(spans: list[tuple[int, int]]) -> int:
    size = end = 0
    for first, last in spans:
        size += max(0, last - max(first, end))
        end = max(end, last)
    return size
