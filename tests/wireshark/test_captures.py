"""Captures of real brokers and clients by the dissector: its fields and its pairs are ours."""

from pathlib import Path

import pytest

from kproto import dialect
from kproto.annotate import request_fields_partly, response_fields_partly
from kproto.wireshark.generate import filter_names
from tests.captures.reading import NAMES, manifest
from tests.captures.test_captures import uncompressed
from tests.support.full import drawn
from tests.tshark.pdml import Pdu
from tests.wireshark.conftest import DRAFTS
from tests.wireshark.dissected import differences, dissected
from wiredump.model import Exchange
from wiredump.sources import open_sources

pytestmark = pytest.mark.slow

KAFKA = dialect("kafka")
FILTERS = filter_names(KAFKA, map(dialect, DRAFTS))
PLAIN = [name for name in NAMES if "secured" not in name]
LARGE = [name for name in PLAIN if "everyday" in name]
COMPARED = sorted({*PLAIN} - {*LARGE} | {*drawn("captures for Wireshark", LARGE, few=1)})


def frames_of(capture: Path) -> dict[tuple[int, str], list[tuple[Exchange, bytes]]]:
    """Whole frames by connection and direction, in their order."""
    found: dict[tuple[int, str], list[tuple[int, Exchange, bytes]]] = {}
    for item in open_sources([str(capture)]):
        if isinstance(item, Exchange):
            for frame in (item.request, item.response):
                if frame is not None and frame.whole and not frame.sasl:
                    key = item.connection.number, frame.direction
                    found.setdefault(key, []).append((frame.offset, item, bytes(frame.raw)))
    return {
        key: [(item, raw) for _, item, raw in sorted(frames, key=lambda each: each[0])]
        for key, frames in found.items()
    }


@pytest.mark.parametrize("name", COMPARED)
def test_every_field_and_every_pair(name: str, script: Path, tmp_path: Path) -> None:
    capture = tmp_path / f"{name}.pcap"
    capture.write_bytes(uncompressed(name))
    ports = manifest()[name]["ports"]
    pdus: dict[tuple[int, str], list[Pdu]] = {}
    for pdu in dissected(capture, script, ports):
        direction = "request" if pdu.target_port in ports else "response"
        if pdu.first("kproto.sasl_token") is None:
            pdus.setdefault((pdu.stream, direction), []).append(pdu)
    compared, requests, wrong = 0, {}, []
    for key, frames in frames_of(capture).items():
        theirs = pdus.get(key, [])[-len(frames) :]  # before: bytes of a frame that began earlier
        assert len(theirs) == len(frames), (key, len(theirs), len(frames))
        for (exchange, raw), pdu in zip(frames, theirs, strict=True):
            compared += 1
            assert pdu.first("kproto.frame_size") == str(len(raw) - 4)
            if exchange.request is None:
                assert pdu.first("kproto.no_request") is not None
                continue
            if key[1] == "request":
                requests[id(exchange)] = pdu.packet
                rows = request_fields_partly(KAFKA, raw).rows
            else:
                assert pdu.first("kproto.request_in") == str(requests[id(exchange)])
                version = exchange.response_version
                assert version is not None
                key_of_api = exchange.api_key
                rows = response_fields_partly(
                    KAFKA, raw, api_key=key_of_api, api_version=version
                ).rows
            found = differences(rows, pdu, FILTERS)
            if found:
                wrong.append(f"packet {pdu.packet} {pdu.title}: {found[0]} ({len(found)})")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])
    assert compared > 50
