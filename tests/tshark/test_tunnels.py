"""The wrapped captures by tshark: each is the encapsulation that it is said to be, and inside are
the segments of the bare capture."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.captures.test_captures import uncompressed
from tests.captures.worse import HEADER, records_of
from tests.captures.wrapping import WRAPPINGS, fragmented, wrapped
from tests.support.full import drawn
from tests.support.toolchain import require

pytestmark = pytest.mark.slow

CAPTURE = uncompressed("kafka-4.4.0-admin")
BARE = CAPTURE[:HEADER] + b"".join(records_of(CAPTURE)[:40])

READ = [name for name, each in WRAPPINGS.items() if each.layers]
DECODED_AS = ("mpls.label==16,pwethcw", "mpls.label==22,pwethnocw")
"""Labels do not say what they carry, and Wireshark's heuristics go by the MAC addresses."""


def segments(data: bytes, path: Path) -> list[tuple[str, str, str]]:
    """Of each packet with TCP: its layers up to that, sequence number and length."""
    path.write_bytes(data)
    fields = [f"-e{name}" for name in ("frame.protocols", "tcp.seq_raw", "tcp.len")]
    decoded = [f"-d{each}" for each in DECODED_AS]
    require("tshark")
    asked = ["tshark", "-n", "-r", str(path), *decoded, "-Tfields", *fields]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=300)
    return list(_segments(told.stdout))


def _segments(told: str) -> Iterator[tuple[str, str, str]]:
    for line in told.splitlines():
        protocols, sequence, length = line.split("\t")
        layers = protocols.split(":")
        if "tcp" in layers:
            yield ":".join(layers[: layers.index("tcp") + 1]), sequence, length


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    found = segments(BARE, tmp_path_factory.mktemp("tshark") / "bare.pcap")
    assert len(found) == 40
    return [(sequence, length) for _, sequence, length in found]


@pytest.mark.parametrize("name", drawn("wrappings for tshark", READ, few=3))
def test_what_wraps_is_what_is_said(name: str, bare: list[tuple[str, str]], tmp_path: Path) -> None:
    found = segments(wrapped(BARE, WRAPPINGS[name]), tmp_path / "wrapped.pcap")
    assert {layers for layers, _, _ in found} == {WRAPPINGS[name].layers}
    assert [(sequence, length) for _, sequence, length in found] == bare


def test_fragments(bare: list[tuple[str, str]], tmp_path: Path) -> None:
    found = segments(fragmented(BARE), tmp_path / "fragments.pcap")
    assert [(sequence, length) for _, sequence, length in found] == bare
