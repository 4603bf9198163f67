"""Every field that tshark finds in a capture against ours, by where it is, what it is, and what it
says.

tshark's fields have a place: the same bytes have to be one field of ours, of a name that fits
(``names``), with the same value. Records are compared in their order, for compressed ones have no
place in the frame. What tshark says it cannot decode is counted and left out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kproto import dialect
from kproto.annotate import FrameField, request_fields_partly, response_fields_partly
from tests.tshark.names import NAMES
from tests.tshark.pdml import Field, Pdu, kafka_pdus
from tests.tshark.records import record_differences
from tests.tshark.values import says_the_same
from wiredump.model import Anomaly, Direction, Exchange, Frame
from wiredump.sources import open_sources

__all__ = ["Agreement", "Difference", "Pair", "compare"]

KAFKA = dialect("kafka")


class Pair(NamedTuple):
    """An api key by name, and a version."""

    api: str
    version: int


class Difference(NamedTuple):
    """``theirs`` is the name of tshark's field without ``kafka.``, ``kind`` what is wrong:
    ``place``, ``name``, ``value``, ``records``. ``detail`` is for people."""

    api: str
    version: int
    direction: str
    theirs: str
    kind: str
    detail: str


@dataclass
class Agreement:
    """``left_out`` counts frames whose body tshark does not decode, by the reason; of those
    ``header_fields`` and ``headers_agreed`` are compared. Of the others, ``fields`` and ``agreed``
    count fields of tshark's by pair, ``unseen`` leaves of ours that no field of tshark's is about
    (by api and name), ``malformed`` frames in which tshark gave up half way.
    """

    frames: int = 0
    cut: int = 0
    compared: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    header_fields: int = 0
    headers_agreed: int = 0
    fields: Counter[Pair] = field(default_factory=Counter)
    agreed: Counter[Pair] = field(default_factory=Counter)
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)
    malformed: Counter[Pair] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    paired: int = 0
    wrongly_paired: list[str] = field(default_factory=list)


class _Ours(NamedTuple):
    exchange: Exchange
    frame: Frame


_Key = tuple[int, Direction]


def compare(capture: Path, ports: list[int], found: Agreement) -> None:
    """Add a capture to what was ``found``. AssertionError where the frames themselves are not the
    same ones."""
    ours, unframed = _ours(capture)
    theirs = _theirs(capture, ports)
    assert ours.keys() >= theirs.keys(), theirs.keys() - ours.keys()
    matched: list[tuple[_Ours, Pdu]] = []
    for key, frames in ours.items():
        pdus = _from(unframed[key], theirs.get(key, []))
        # tshark shows no frame of which the connection's end cut something off.
        whole = [one for one in frames if one.frame.whole and not one.frame.sasl]
        found.cut += sum(not one.frame.whole for one in frames)
        sizes = [one.frame.size - 4 for one in whole]
        assert sizes == list(map(_size, pdus)), (key, len(sizes), len(pdus))
        matched += zip(whole, pdus, strict=True)
    for one, pdu in matched:
        found.frames += 1
        _compare(one, pdu, found)
    _compare_pairing(matched, found)


def _size(pdu: Pdu) -> int:
    return int(pdu.first("kafka.len") or -1)


def _from(unframed: int, pdus: list[Pdu]) -> list[Pdu]:
    """Without those in the bytes before our first frame: where a connection began before the
    capture, tshark takes each packet's first byte for a frame's, and we wait for one that can be
    told. The bytes have to be as many."""
    while unframed > 0:
        unframed -= 4 + _size(pdus[0])
        pdus = pdus[1:]
    assert unframed == 0
    return pdus


def _ours(capture: Path) -> tuple[dict[_Key, list[_Ours]], Counter[_Key]]:
    """The frames in their order, and how many bytes are in none."""
    frames: dict[_Key, list[_Ours]] = defaultdict(list)
    unframed: Counter[_Key] = Counter()
    for item in open_sources([str(capture)]):
        if isinstance(item, Anomaly) and item.kind == "unframed":
            assert item.connection is not None
            assert item.direction is not None
            unframed[item.connection.number, item.direction] += item.size
        if isinstance(item, Exchange):
            for frame in (item.request, item.response):
                if frame is not None:
                    frames[item.connection.number, frame.direction].append(_Ours(item, frame))
    for each in frames.values():
        each.sort(key=lambda one: one.frame.offset)
    return frames, unframed


def _theirs(capture: Path, ports: list[int]) -> dict[_Key, list[Pdu]]:
    frames: dict[_Key, list[Pdu]] = defaultdict(list)
    for pdu in kafka_pdus(capture, ports):
        frames[pdu.stream, "request" if pdu.target_port in ports else "response"].append(pdu)
    return frames


# ---- one frame -----------------------------------------------------------------------------------


def _compare(one: _Ours, pdu: Pdu, found: Agreement) -> None:
    exchange, frame = one
    reason = _not_decoded(pdu)
    if reason:
        found.left_out[reason] += 1
        if exchange.request is not None:  # else neither of us knows what it answers
            _compare_header(one, pdu, found)
        return
    found.compared += 1
    rows = _rows(one)
    leaves = {(row.offset, row.length): row for row in rows if row.leaf}
    places = {(row.offset, row.length): row for row in reversed(rows)} | leaves
    pair = _pair(exchange)
    found.malformed[pair] += pdu.malformed
    # Where we have the tag and the size of what follows, tshark has the tag alone.
    tags = {row.offset: row for row in rows if row.path.endswith(" (tag)")}
    touched: set[tuple[int, int]] = set()
    inner: list[Field] = []
    for each in pdu.fields:
        name = each.name.removeprefix("kafka.")
        if not each.name.startswith("kafka."):
            continue
        if {"Record Batch", "Message Set"} & set(each.inside):
            inner.append(each)
            continue
        if not each.length:
            continue  # made up: what it knows of the request, its arithmetic, its warnings
        found.fields[pair] += 1
        touched.add((each.offset, each.length))
        ours = places.get((each.offset, each.length))
        if name == "tagged_field_tag":
            ours = tags.get(each.offset)
        problem = _problem(name, each, ours)
        if problem is None:
            found.agreed[pair] += 1
        else:
            difference = Difference(pair.api, pair.version, frame.direction, name, *problem)
            found.differences.append(difference)
    records = [row for row in leaves.values() if row.type == "records" and row.value is not None]
    compared, differences = record_differences(records, inner)
    found.fields[pair] += compared
    found.agreed[pair] += compared - len(differences)
    found.differences += (
        Difference(pair.api, pair.version, frame.direction, theirs, "records", detail)
        for theirs, detail in differences
    )
    found.unseen.update(
        (pair.api, _last(row.path))
        for at, row in leaves.items()
        if at not in touched and row.type != "records" and not row.path.endswith(")")
    )


def _not_decoded(pdu: Pdu) -> str:
    """Why, in tshark's own words for it; empty where it claims to."""
    for each in pdu.fields:
        if each.name == "kafka.request_missing":
            return "tshark found no request for the response"
        if each.name == "kafka.unknown_api_key" and not each.inside:
            return "tshark does not know the api key"
        if each.name == "kafka.unsupported_api_version" and not each.inside:
            return "tshark does not know the version"
    return ""


def _compare_header(one: _Ours, pdu: Pdu, found: Agreement) -> None:
    """The header is the same whatever the body."""
    exchange, frame = one
    rows = {row.path: row for row in _rows(one) if row.leaf}
    names = {"len": "size", "correlation_id": "correlation_id"}
    if frame.direction == "request":
        names |= {"api_key": "request_api_key", "api_version": "request_api_version",
                  "client_id": "client_id"}  # fmt: skip
    for theirs, ours in names.items():
        each = next((each for each in pdu.fields if each.name == f"kafka.{theirs}"), None)
        if each is None:
            continue
        found.header_fields += 1
        problem = _problem(theirs, each, rows[ours])
        if problem is None:
            found.headers_agreed += 1
        else:
            pair = _pair(exchange)
            difference = Difference(pair.api, pair.version, frame.direction, theirs, *problem)
            found.differences.append(difference)


def _problem(name: str, theirs: Field, ours: FrameField | None) -> tuple[str, str] | None:
    if ours is None:
        return "place", f"nothing of ours at {theirs.offset}+{theirs.length}: {theirs.show[:40]!r}"
    if name == "tagged_field_tag":
        return None if int(theirs.show, 0) == int(ours.value) else ("value", f"{theirs.show}")
    if name == "tagged_field_data":
        return None  # the same bytes, which we look into
    ours_named = _last(ours.path)
    if name not in NAMES:
        return "name", f"a field that the table does not know, laid over {ours_named}"
    if ours_named not in NAMES[name]:
        return "name", f"laid over {ours_named}"
    if not says_the_same(theirs, ours):
        return "value", f"{theirs.show[:40]!r}, and ours is {str(ours.value)[:40]!r}"
    return None


def _last(path: str) -> str:
    """``topics[3].partitions[0].replicas[1]`` -> ``replicas``."""
    return path.rpartition(".")[2].partition("[")[0]


def _rows(one: _Ours) -> list[FrameField]:
    exchange, frame = one
    if frame.direction == "request":
        return request_fields_partly(KAFKA, frame.raw).rows
    version = exchange.response_version
    assert version is not None
    return response_fields_partly(
        KAFKA, frame.raw, api_key=exchange.api_key, api_version=version
    ).rows


def _pair(exchange: Exchange) -> Pair:
    name = KAFKA.apis[exchange.api_key].request.MESSAGE_NAME.removesuffix("Request")
    return Pair(name, exchange.api_version)


# ---- pairing -------------------------------------------------------------------------------------


def _compare_pairing(matched: list[tuple[_Ours, Pdu]], found: Agreement) -> None:
    """``kafka.request_frame`` of a response, and ``kafka.response_frame`` of a request, are the
    packets in which tshark found the other one."""
    packets = {id(one.frame): pdu.packet for one, pdu in matched}
    for (exchange, frame), pdu in matched:
        for name, other in _others(exchange, frame):
            said = pdu.first(f"kafka.{name}")
            if said is None:
                continue
            found.paired += 1
            if other is None or packets.get(id(other)) != int(said):
                found.wrongly_paired.append(f"packet {pdu.packet}: {name} is {said}")


def _others(exchange: Exchange, frame: Frame) -> Iterator[tuple[str, Frame | None]]:
    if frame.direction == "response":
        yield "request_frame", exchange.request
    else:
        yield "response_frame", exchange.response
