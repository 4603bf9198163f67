"""Records of TLS 1.3 that Python's ssl does not write: key updates, padding, many small ones lost;
and numbers from RFC 8448, which everybody's key schedule has to come to."""

from __future__ import annotations

import pytest

from wiredump.model import Place
from wiredump.tls.handshake import FINISHED, KEY_UPDATE, Messages, ServerHello, server_hello
from wiredump.tls.keylog import KeyLog
from wiredump.tls.protection import HEADER, SUITES, keys_13, updated
from wiredump.tls.records import APPLICATION, HANDSHAKE, Opened, RecordStream
from wiredump.tls.session import Session

RANDOM = bytes(range(32))
SUITE = 0x1301
HERE = Place(0, 0)


def test_keys_of_a_traffic_secret() -> None:
    """RFC 8448, 3: the server's handshake keys, and its first record's nonce."""
    secret = bytes.fromhex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")
    keys = keys_13(SUITES[SUITE], secret)
    assert keys._iv.hex() == "5d313eb2671276ee13000b30"


class Writer:
    """One direction, as its sender writes it."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.number = 0

    def record(self, content: int, data: bytes, padding: int = 0) -> bytes:
        keys = keys_13(SUITES[SUITE], self.secret)
        inner = data + bytes([content]) + bytes(padding)
        header = bytes([APPLICATION, 3, 3]) + (len(inner) + 16).to_bytes(2)
        nonce = keys._nonce(self.number.to_bytes(8), header)
        self.number += 1
        return header + keys._aead.encrypt(nonce, inner, header)

    def update(self) -> bytes:
        record = self.record(HANDSHAKE, bytes([KEY_UPDATE, 0, 0, 1, 0]))
        self.secret, self.number = updated(SUITES[SUITE], self.secret), 0
        return record


def streams() -> tuple[Writer, RecordStream]:
    """Behind the handshake."""
    handshake, application = b"\x01" * 32, b"\x02" * 32
    log = KeyLog()
    for label, secret in (
        ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", handshake),
        ("CLIENT_TRAFFIC_SECRET_0", application),
    ):
        log.add(f"{label} {RANDOM.hex()} {secret.hex()}\n")
    session = Session(log)
    session.hello(client_random=RANDOM, server=ServerHello(0x0304, bytes(32), SUITE))
    stream = RecordStream(session)
    stream.change_keys()
    return Writer(application), stream


def drained(stream: RecordStream) -> list[Opened]:
    found = []
    while (record := stream.next()) is not None:
        found.append(record)
        if record.content == HANDSHAKE:
            for kind, _ in Messages().feed(record.plaintext):
                assert kind == KEY_UPDATE
                stream.change_keys()
    return found


def test_key_updates_and_padding() -> None:
    writer, stream = streams()
    sent = [writer.record(APPLICATION, b"one"), writer.update(), writer.update()]
    sent += [writer.record(APPLICATION, b"two", padding=100), writer.record(APPLICATION, b"")]
    stream.data(b"".join(sent), 0, HERE)
    found = [each for each in drained(stream) if each.content == APPLICATION]
    assert [each.plaintext for each in found] == [b"one", b"two", b""]
    assert [each.overhead for each in found] == [HEADER + 17, HEADER + 117, HEADER + 17]
    assert not stream.held


def test_plaintext_waits_for_the_end_of_its_record() -> None:
    """Whoever has all of the plaintext cannot open it before the tag is there."""
    writer, stream = streams()
    record = writer.record(APPLICATION, b"p" * 100)
    stream.data(record[:40], 10, HERE)
    stream.data(record[40:-8], 20, HERE, 7)
    stream.data(record[-8:], 30, HERE, 5)
    (opened,) = drained(stream)
    assert [(piece.timestamp_ns, piece.waited_ns) for piece in opened.pieces] == [
        (10, 25),
        (20, 15),
    ]


@pytest.mark.parametrize("lost", [1, 2, 40, 500])
@pytest.mark.parametrize("updated_within", [False, True])
def test_records_lost(lost: int, updated_within: bool) -> None:
    """However many, the next one says which it is; also where keys changed meanwhile."""
    writer, stream = streams()
    stream.data(writer.record(APPLICATION, b"first"), 0, HERE)
    gone = [writer.record(APPLICATION, bytes(number % 7)) for number in range(lost)]
    if updated_within:
        gone += [writer.update(), *(writer.record(APPLICATION, b"x") for _ in range(3))]
    drained(stream)
    stream.gap(sum(map(len, gone)), "lost")
    stream.data(writer.record(APPLICATION, b"next") + writer.record(APPLICATION, b"last"), 0, HERE)
    found = drained(stream)
    assert [each.plaintext for each in found] == [b"next", b"last"]
    if not updated_within:
        assert found[0].lost == sum(number % 7 for number in range(lost))
    assert found[1].lost == 0
    assert not stream.passed()


def test_hellos() -> None:
    extensions = bytes.fromhex("002b00020304")
    body = bytes.fromhex("0303") + bytes(32) + b"\x04abcd" + bytes.fromhex("130100")
    whole = body + len(extensions).to_bytes(2) + extensions
    assert server_hello(whole) == ServerHello(0x0304, bytes(32), 0x1301)
    assert server_hello(body) == ServerHello(0x0303, bytes(32), 0x1301)
    for length in range(len(body) - 1):
        assert server_hello(whole[:length]) is None
    retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    assert server_hello(whole[:2] + retry + whole[34:]) is None


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_messages_however_they_are_cut(step: int) -> None:
    data = bytes([FINISHED, 0, 0, 3]) + b"abc" + bytes([11, 0, 1, 0]) + bytes(256)
    data += bytes([KEY_UPDATE, 0, 0, 1, 1])
    messages = Messages()
    found = [
        each for at in range(0, len(data), step) for each in messages.feed(data[at : at + step])
    ]
    assert found == [(FINISHED, b"abc"), (KEY_UPDATE, b"\x01")]
