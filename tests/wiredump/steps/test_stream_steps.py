"""The steps of what lies before and behind the reassembly: containers, frames, requests that wait,
TLS, texts, and the proxy's frames."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from kproto.capture import container
from kproto.dialects import dialect
from kproto.framing import FrameSplitter
from kproto.journal import Journal
from mockbroker.proxy.frame_stream import FrameStream
from tests.support.steps import MOST_GROWTH, growth_of
from tests.wiredump.tls.test_records import drained, streams
from wiredump import native
from wiredump.conversation import Conversation
from wiredump.model import Connection, Place
from wiredump.pairing import Pairing
from wiredump.readers.container import ContainerReader
from wiredump.sources import open_sources
from wiredump.tls.handshake import server_hello
from wiredump.tls.keylog import KeyLog
from wiredump.tls.records import APPLICATION
from wiredump.tls.talk import TlsTalk

SIZE = 200
HERE = Place(0, 0)


def grows(prepare: Callable[[int], Callable[[], object]], size: int = SIZE) -> None:
    found = growth_of(prepare, size)
    assert found.factor <= MOST_GROWTH, found


def connection() -> Connection:
    return Connection(0, "a:1", "b:9092", 0, from_start=True, place=HERE)


def request(number: int, software: str | None = None) -> bytes:
    if software is None:
        body = pack(">hhih", 18, 0, number, 1) + b"c"
    else:
        name = bytes([len(software) + 1]) + software.encode()
        body = pack(">hhih", 18, 3, number, 1) + b"c\0" + name + b"\x02v\0"
    return pack(">i", len(body)) + body


def response(number: int) -> bytes:
    return pack(">iih", 6, number, 0)


# ---- requests that wait ------------------------------------------------------------------------

ORDERS: dict[str, Callable[[range], list[int]]] = {
    "in order": list,
    "reversed": lambda numbers: list(reversed(numbers)),
    "never": lambda numbers: [],
    "the first never": lambda numbers: list(numbers[1:]),
    "unknown ids": lambda numbers: [number + 2**14 for number in numbers],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("engine", ["python", "extension"])
def test_requests_that_wait(order: str, engine: str) -> None:
    module = native.built() if engine == "extension" else None

    def prepare(size: int) -> Callable[[], None]:
        asked = b"".join(request(number << 16) for number in range(size))
        answers = [response(number << 16) for number in ORDERS[order](range(size))]

        def run() -> None:
            with native.using(module):
                talk = Conversation(connection(), dialect("kafka"))
                talk.data(True, asked, 0, HERE)
                for answer in answers:
                    talk.data(False, answer, 0, HERE)
                talk.end("it ends")

        return run

    grows(prepare)


@pytest.mark.parametrize("engine", ["python", "extension"])
def test_one_request_waits_while_others_are_answered(engine: str) -> None:
    """What was answered is not passed again and again, and is not kept."""
    module = native.built() if engine == "extension" else None

    def prepare(size: int) -> Callable[[], None]:
        def run() -> None:
            with native.using(module):
                pairing = Pairing(connection(), dialect("kafka"))
                talk = Conversation(connection(), dialect("kafka"))
                talk._pairing = pairing
                talk.data(True, request(-1), 0, HERE)
                for number in range(size):
                    talk.data(True, request(number), 0, HERE)
                    talk.data(False, response(number), 0, HERE)
                assert len(pairing._open) == 1

        return run

    grows(prepare)


def test_many_requests_and_a_response_direction_that_is_searched() -> None:
    """Behind a gap, each packet is searched for responses to everything that waits."""

    def prepare(size: int) -> Callable[[], None]:
        def run() -> None:
            talk = Conversation(connection(), dialect("kafka"))
            talk.data(True, request(-1), 0, HERE)
            talk.data(False, response(-1)[:5], 0, HERE)
            talk.gap(False, 1000, "lost", 0, HERE)
            for number in range(size):
                talk.data(True, request(number << 16), 0, HERE)
                talk.data(False, b"\xff" * 20, 0, HERE)
            talk.end("it ends")

        return run

    grows(prepare)


def test_a_client_whose_software_changes() -> None:
    def prepare(size: int) -> Callable[[], None]:
        def run() -> None:
            talk = Conversation(connection(), dialect("kafka"))
            for number in range(size):
                talk.data(True, request(number, f"software{number % 2}"), 0, HERE)

        return run

    grows(prepare)


# ---- frames ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
@pytest.mark.parametrize("frame", [6, 60, 1 << 14])
def test_frames_in_pieces(piece: int, frame: int) -> None:
    """Small frames in one segment, and one frame over many."""

    def prepare(size: int) -> Callable[[], None]:
        one = pack(">ii", frame, 7) + bytes(frame - 4)
        data = one * (size * max(4, piece if piece < 100 else 20) // len(one) + 1)

        def run() -> None:
            splitter = FrameSplitter(keep_size=True)
            out: list[bytes] = []
            stream = FrameStream(lambda held, at: at + len(one), out)
            for at in range(0, len(data), piece):
                splitter.feed(data[at : at + piece])
                for _ in splitter.frames():
                    pass
                stream.receive(data[at : at + piece])

        return run

    grows(prepare)


# ---- TLS ---------------------------------------------------------------------------------------


def test_records_behind_holes() -> None:
    def prepare(size: int) -> Callable[[], None]:
        writer, stream = streams()
        records = [writer.record(APPLICATION, bytes(20)) for _ in range(2 * size)]

        def run() -> None:
            for number in range(0, len(records), 2):
                stream.gap(len(records[number]), "lost")
                for byte in records[number + 1]:
                    stream.data(bytes([byte]), 0, HERE)
                drained(stream)
                stream.passed()

        return run

    grows(prepare, 100)


def test_tls_that_waits_for_keys() -> None:
    def prepare(size: int) -> Callable[[], None]:
        log = KeyLog(more=lambda: "")
        talk = TlsTalk(Conversation(connection()), log, lambda _count: None)
        hello = b"\x16\x03\x01\0\x04\x0e\0\0\0"

        def run() -> None:
            talk.data(True, hello + b"\x17\x03\x03\0\x30" + bytes(48), 0, HERE)
            for _ in range(size):
                talk.data(True, b"\x17", 0, HERE)
                talk.gap(True, 5, "lost", 0, HERE)
            talk.end("it ends")

        return run

    grows(prepare)


def test_a_direction_of_nothing_but_gaps() -> None:
    """As with a snap length of the headers."""

    def prepare(size: int) -> Callable[[], None]:
        log = KeyLog(more=lambda: "")
        talk = TlsTalk(Conversation(connection()), log, lambda _count: None)

        def run() -> None:
            for number in range(size):
                talk.gap(bool(number % 2), 100, "snaplen", 0, HERE)
            talk.end("it ends")

        return run

    grows(prepare)


def test_a_hello_of_many_extensions() -> None:
    """Each extension is read where it stands; nothing is copied."""

    def prepare(size: int) -> Callable[[], object]:
        body = bytes(2) + bytes(32) + b"\0" + bytes(3) + bytes(2) + bytes(4) * size
        return lambda: server_hello(body)

    grows(prepare, 2_000)


# ---- containers --------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 100, 1 << 20])
def test_compressed_in_many_members(piece: int) -> None:
    def prepare(size: int) -> Callable[[], None]:
        data = container.pcap_header(1) + container.pcap_record(0, bytes(30)) * size
        packed = b"".join(gzip.compress(data[at : at + 20]) for at in range(0, len(data), 20))

        def run() -> None:
            reader = ContainerReader()
            for at in range(0, len(packed), piece):
                for _ in reader.feed(packed[at : at + piece]):
                    pass

        return run

    grows(prepare, 60)


# ---- texts -------------------------------------------------------------------------------------


def journal(size: int) -> str:
    lines = []
    for number in range(size):
        raw = b64encode(request(0)).decode()
        entry = {
            "sequence": number, "timestamp_ns": number, "broker_id": 1, "connection_id": number,
            "direction": "request", "api_key": 18, "correlation_id": 0, "raw": raw,
        }  # fmt: skip
        lines.append(json.dumps(entry))
    return "\n".join(lines) + "\n"


def request_log(size: int) -> str:
    line = (
        '[2026-01-01 00:00:00,000] DEBUG Completed request:{"isForwarded":false,"requestHeader":'
        '{"requestApiKey":18,"requestApiVersion":0,"correlationId":%d,"clientId":"c"},'
        '"request":{},"response":{},"connection":"10.0.0.1:9092-10.0.0.2:%d-0"}\n'
    )
    return "".join(line % (number, number) for number in range(size))


def hexadecimal(size: int) -> str:
    asked = [request(number).hex() for number in range(size)]
    return "\n".join([*asked, *(response(number).hex() for number in reversed(range(size)))]) + "\n"


def one_long_line(size: int) -> str:
    return journal(1).rstrip("\n}") + ', "note": "' + "x" * (size * 2000) + '"}\n'


@pytest.mark.parametrize("text", [journal, request_log, hexadecimal, one_long_line])
def test_texts(text: Callable[[int], str], tmp_path: Path) -> None:
    def prepare(size: int) -> Callable[[], None]:
        path = tmp_path / f"{size}.txt"
        path.write_text(text(size))

        def run() -> None:
            sources = open_sources([str(path)])
            assert list(sources)
            assert sources.connections

        return run

    grows(prepare)


def test_many_files(tmp_path: Path) -> None:
    """Captures that are merged, and journals one after the other."""

    def prepare(size: int) -> Callable[[], None]:
        paths = []
        for number in range(size):
            capture, text = tmp_path / f"{number}.pcap", tmp_path / f"{number}.jsonl"
            capture.write_bytes(container.pcap_header(1) + container.pcap_record(number, bytes(30)))
            text.write_text(journal(2))
            paths += [str(capture), str(text)]

        def run() -> None:
            list(open_sources(paths))

        return run

    for module in (None, native.built()):
        with native.using(module):
            grows(prepare, 40)


# ---- the mock's journal ------------------------------------------------------------------------


def test_a_journal_that_is_read_while_it_grows() -> None:
    """By a client that polls, and by one that is far behind, with runs of entries in between."""

    def prepare(size: int) -> Callable[[], None]:
        def run() -> None:
            mine = Journal(max_entries=size, max_bytes=1 << 30)
            for number in range(2 * size):
                mine.record_run(number, 1, 1, "request", "p", 18, 0, [number, number + 1])
                newest = mine.newer(mine.last_sequence - 2)
                assert [each.correlation_id for each in newest] == [number, number + 1]
            behind = mine.last_sequence - size
            while found := mine.newer(behind, 3):
                assert found[0].sequence == behind + 1
                behind = found[-1].sequence
            assert behind == mine.last_sequence

        return run

    grows(prepare)
