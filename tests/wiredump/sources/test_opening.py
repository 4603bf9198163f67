"""Files of any kind, by their first bytes: compressed, merged, from standard input, and growing."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kproto.capture import Conversation as Packets
from kproto.capture.container import RAW_IP, pcap_header, pcap_record
from kproto.errors import KprotoError
from kproto.journal import Entry, JournalWriter
from tests.support.toolchain import require_module
from tests.wiredump.talk import Said, say
from wiredump.model import Anomaly, Exchange
from wiredump.sources import Sources, open_sources

SECONDS = 20
LOGS = Path(__file__).parents[2] / "captures" / "request_logs"


def talk(seed: int, count: int = 4) -> list[Said]:
    rng = random.Random(seed)
    return [say(rng, 100 * seed + number) for number in range(count)]


def capture(
    said: list[Said], *, start_ns: int = 0, step_ns: int = 10**9, port: int = 50000
) -> list[bytes]:
    """A file's header, and a piece of it for each packet."""
    packets = Packets(("10.0.0.1", port), ("10.0.0.2", 9092))
    plain = packets.open()
    for each in said:
        plain += packets.send(each.request)
        plain += packets.send(each.response or b"", from_server=True)
    plain += packets.close()
    records = [
        pcap_record(start_ns + number * step_ns, packet, nanoseconds=True)
        for number, packet in enumerate(plain)
    ]
    return [pcap_header(RAW_IP, nanoseconds=True), *records]


def journal(said: list[Said]) -> str:
    out = io.StringIO()
    writer = JournalWriter(out)
    number = 0
    for each in said:
        for direction, raw in (("request", each.request), ("response", each.response)):
            if raw is not None:
                number += 1
                writer.write(
                    Entry(
                        number,
                        number,
                        1,
                        1,
                        direction,
                        "10.0.0.1:50000",
                        each.api_key,
                        each.api_version,
                        each.correlation_id,
                        raw=raw,
                    )
                )
    return out.getvalue()


def exchanges(sources: Sources) -> list[tuple[bytes, bytes | None]]:
    """In the order of the requests; nothing damaged."""
    items = list(sources)
    assert not [item for item in items if isinstance(item, Anomaly)]
    found: list[Any] = [
        item for item in items if isinstance(item, Exchange) and item.request is not None
    ]
    found.sort(key=lambda each: (each.connection.number, each.request.offset))
    return [(each.request.raw, each.response.raw if each.response else None) for each in found]


def expected(said: list[Said]) -> list[tuple[bytes, bytes | None]]:
    return [(each.request, each.response) for each in said]


def contents() -> dict[str, tuple[str, bytes]]:
    said = talk(1)
    hexes = "".join(
        f"{mark} {raw.hex()}\n"
        for each in said
        for mark, raw in ((">", each.request), ("<", each.response))
        if raw is not None
    )
    return {
        "capture": ("capture", b"".join(capture(said))),
        "journal": ("journal", journal(said).encode()),
        "hexadecimal": ("hexadecimal", hexes.encode()),
        "request log": ("request log", (LOGS / "kafka-3.9.2.log").read_bytes()),
    }


def packed(data: bytes, how: str) -> bytes:
    if how == "gzip":
        # In two members, as a rotated log that was appended to has them.
        return gzip.compress(data[:100]) + gzip.compress(data[100:])
    if how == "zstd":
        zstd: Any = require_module("zstandard")
        return bytes(zstd.compress(data))
    return data


@pytest.mark.parametrize("how", ["plain", "gzip", "zstd"])
@pytest.mark.parametrize("kind", ["capture", "journal", "hexadecimal", "request log"])
def test_what_a_file_is_its_first_bytes_say(kind: str, how: str, tmp_path: Path) -> None:
    expected_kind, data = contents()[kind]
    plain, path = tmp_path / "plain", tmp_path / "whatever.bin"
    plain.write_bytes(data)
    path.write_bytes(packed(data, how))
    sources = open_sources([str(path)])
    found = exchanges(sources)
    assert found == exchanges(open_sources([str(plain)]))
    assert found
    (read,) = sources.read
    assert (read.kind, read.name, read.bytes) == (expected_kind, str(path), path.stat().st_size)
    if kind in ("capture", "journal"):
        assert found == expected(talk(1))


def test_an_invalid_line_of_a_journal_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(journal(talk(3)) + "{bad\n")
    with pytest.raises(KprotoError, match=r"j\.jsonl, line \d+: not a journal entry"):
        list(open_sources([str(path)]))


def test_what_is_none_of_them_says_so(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_bytes(b"Dear Sir or Madam,\n" * 100)
    (item,) = open_sources([str(path)])
    assert isinstance(item, Anomaly)
    with pytest.raises(FileNotFoundError):
        open_sources([str(tmp_path / "nothing")])


def test_captures_of_one_incident_are_merged_by_time(tmp_path: Path) -> None:
    """One connection, its packets turn by turn in two files, as two machines had them."""
    said = talk(2)
    header, *records = capture(said)
    names = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    for place, name in enumerate(names):
        name.write_bytes(header + b"".join(records[place::2]))
    for order in (names, names[::-1]):
        sources = open_sources([str(name) for name in order])
        assert exchanges(sources) == expected(said)
        assert len(sources.connections) == 1
        assert sources.account["payload"] == sources.account["frames"]
        assert [each.number for each in sources.read] == [0, 1]


def test_connections_are_numbered_over_all_sources(tmp_path: Path) -> None:
    """Captures, then journals and logs: no number twice."""
    (tmp_path / "a").write_bytes(b"".join(capture(talk(1))))
    (tmp_path / "b").write_bytes(b"".join(capture(talk(2), start_ns=10**12, port=50001)))
    (tmp_path / "c").write_text(journal(talk(3)))
    sources = open_sources([str(tmp_path / name) for name in ("c", "a", "b")])
    assert exchanges(sources) == expected(talk(1) + talk(2) + talk(3))
    assert sorted(sources.connections) == [0, 1, 2]
    assert [each.kind for each in sources.read] == ["journal", "capture", "capture"]


@pytest.mark.parametrize("kind", ["capture", "journal"])
def test_standard_input(kind: str) -> None:
    """A pipe, which cannot be sought: as from ``tcpdump -w -``."""
    code = (
        "from wiredump.sources import open_sources\n"
        "from wiredump.model import Exchange\n"
        "items = list(open_sources(['-']))\n"
        "print(sum(isinstance(item, Exchange) for item in items), len(items))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=contents()[kind][1], capture_output=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [b"4", b"4"]


def grown(path: Path, pieces: list[bytes], go_on: threading.Semaphore) -> None:
    """Write a piece whenever told to."""
    with path.open("ab", buffering=0) as file:
        for piece in pieces:
            assert go_on.acquire(timeout=SECONDS)
            file.write(piece)


@pytest.mark.parametrize("kind", ["capture", "journal"])
def test_a_growing_file_is_followed(kind: str, tmp_path: Path) -> None:
    """Each exchange is there as soon as its bytes are, and none before; the file never ends."""
    said = [each for each in talk(1, 12) if each.response is not None][:4]
    if kind == "capture":
        header, *packets = capture(said)
        # The opening, and then a request and its response at a time.
        pieces = [header + b"".join(packets[:3])]
        pieces += [b"".join(packets[at : at + 2]) for at in range(3, 3 + 2 * len(said), 2)]
    else:
        lines = journal(said).encode().splitlines(keepends=True)
        pieces = [b"", *(b"".join(lines[at : at + 2]) for at in range(0, len(lines), 2))]
    # A piece comes in two halves, cut anywhere.
    halves = [
        half for piece in pieces for half in (piece[: len(piece) // 3], piece[len(piece) // 3 :])
    ]
    path = tmp_path / "growing"
    path.write_bytes(b"")
    go_on = threading.Semaphore(4)
    writer = threading.Thread(target=grown, args=(path, halves, go_on), daemon=True)
    writer.start()
    items: Iterator[Any] = iter(open_sources([str(path)], follow=True))
    for place, each in enumerate(said):
        found = next(items)
        assert isinstance(found, Exchange)
        assert found.request is not None
        assert found.response is not None
        assert (found.request.raw, found.response.raw) == (each.request, each.response)
        if place + 1 < len(said):
            go_on.release(2)
    writer.join(SECONDS)
    items.close()  # type: ignore[attr-defined]


def test_only_one_file_can_be_followed(tmp_path: Path) -> None:
    with pytest.raises(KprotoError, match="only one file"):
        open_sources(["a", "b"], follow=True)


def test_progress_counts_the_bytes_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"".join(capture(talk(1, 50)))))
    counts: list[int] = []
    list(open_sources([str(path)], progress=counts.append))
    assert counts == sorted(counts)
    assert counts[-1] == os.path.getsize(path)


def test_reading_stops_when_nobody_wants_more(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(b"".join(capture(talk(1, 300))))
    sources = open_sources([str(path)])
    assert len(list(islice(sources, 3))) == 3
    assert sources.read[0].bytes < path.stat().st_size or path.stat().st_size < 1 << 20


def test_bytes_are_counted_to_the_end(tmp_path: Path) -> None:
    """Of a file, too, whose packets bring nothing about."""
    made = Packets(("10.0.0.1", 40_000), ("10.0.0.2", 9092))
    packets = [*made.open(), *made.close(), made.acknowledge(from_server=True)]
    sizes = []
    for number, some in enumerate((packets[:-1], packets[-1:])):
        data = pcap_header(RAW_IP) + b"".join(pcap_record(1, each) for each in some)
        (tmp_path / str(number)).write_bytes(data)
        sizes.append(len(data))
    sources = open_sources([str(tmp_path / "0"), str(tmp_path / "1")], rotated=True)
    assert list(sources) == []
    assert [each.bytes for each in sources.read] == sizes
