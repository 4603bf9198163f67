"""Frames in hexadecimal, as tools print them and people paste them."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.full import quick
from tests.wiredump.talk import Said, say, talks
from wiredump.model import Anomaly, Exchange
from wiredump.sources import open_sources
from wiredump.sources.hexadecimal import HexItems, is_hexadecimal


def text_of(raw: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in raw)


def lines_of(raw: bytes) -> list[tuple[int, bytes]]:
    return [(at, raw[at : at + 16]) for at in range(0, len(raw), 16)]


def xxd(raw: bytes) -> str:
    out = ""
    for at, part in lines_of(raw):
        pairs = " ".join(part[each : each + 2].hex() for each in range(0, len(part), 2))
        out += f"{at:08x}: {pairs:<39}  {text_of(part)}\n"
    return out


def xxd_g1(raw: bytes) -> str:
    return "".join(
        f"{at:08x}: {part.hex(' '):<47}  {text_of(part)}\n" for at, part in lines_of(raw)
    )


def hexdump(raw: bytes) -> str:
    out = ""
    for at, part in lines_of(raw):
        halves = f"{part[:8].hex(' '):<23}  {part[8:].hex(' '):<23}"
        out += f"{at:08x}  {halves}  |{text_of(part)}|\n"
    return out + f"{len(raw):08x}\n"


def od(raw: bytes) -> str:
    """``od -A x -t x1z``."""
    out = "".join(
        f"{at:06x} {part.hex(' '):<47}  >{text_of(part)}<\n" for at, part in lines_of(raw)
    )
    return out + f"{len(raw):06x}\n"


def librdkafka(raw: bytes) -> str:
    out = "".join(
        f"{at:08x}: {part.hex(' ') + ' ':<48} {text_of(part):<16}\n" for at, part in lines_of(raw)
    )
    return f"request hexdump ({len(raw)} bytes):\n{out}"


def wireshark(raw: bytes) -> str:
    """Copy as hex and text."""
    out = "".join(
        f"{at:04x}   {part.hex(' '):<47}   {text_of(part)}\n" for at, part in lines_of(raw)
    )
    return out + "\n"


def wireshark_bytes(raw: bytes) -> str:
    """Copy as hex alone."""
    return "".join(f"{at:04x}   {part.hex(' ')}\n" for at, part in lines_of(raw)) + "\n"


def plain(raw: bytes) -> str:
    return raw.hex() + "\n"


def spaced(raw: bytes) -> str:
    return raw.hex(" ", 4).upper() + "  # what it is\n"


def colons(raw: bytes) -> str:
    return raw.hex(":") + "\n"


def prefixed(raw: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in raw) + "\n"


DUMPS: list[Callable[[bytes], str]] = [
    xxd, xxd_g1, hexdump, od, librdkafka, wireshark, wireshark_bytes, plain, spaced, colons,
    prefixed,
]  # fmt: skip


def read(text: str) -> list[Any]:
    return list(HexItems().read(text.splitlines(keepends=True)))


def said_of(items: list[Any]) -> list[tuple[bytes, bytes | None]]:
    assert not [item for item in items if isinstance(item, Anomaly) and item.kind == "damaged"]
    found = [item for item in items if isinstance(item, Exchange)]
    return [
        (each.request.raw, each.response.raw if each.response else None)
        for each in found
        if each.request is not None
    ]


@pytest.mark.parametrize("dump", DUMPS)
@settings(max_examples=quick(25, 8))
@given(st.data())
def test_a_request_in_any_form_is_read_to_the_byte(
    dump: Callable[[bytes], str], data: st.DataObject
) -> None:
    """The text beside the bytes is no bytes, though it may look like some (``abcdefabcdef``)."""
    rng = data.draw(st.randoms(use_true_random=True))
    said = say(rng, data.draw(st.integers(0, 2**31 - 1)))
    text = dump(said.request)
    assert is_hexadecimal(text)
    assert said_of(read(text)) == [(said.request, None)]


@pytest.mark.parametrize("dump", DUMPS)
@pytest.mark.parametrize("text", [b"abcdef0123456789" * 3, b"cafe babe" * 5])
def test_text_that_looks_like_digits_is_no_bytes(dump: Callable[[bytes], str], text: bytes) -> None:
    frame = (len(text) + 13).to_bytes(4) + bytes.fromhex("000c0000000000010003") + b"abc" + text
    items = read(dump(frame))
    assert [each[0] for each in said_of(items)] == [frame]


@pytest.mark.parametrize("dump", [xxd, hexdump, od, librdkafka, wireshark])
@settings(max_examples=quick(25, 8))
@given(talks(most=3))
def test_marked_dumps_are_a_conversation(dump: Callable[[bytes], str], said: list[Said]) -> None:
    text = ""
    for each in said:
        for mark, raw in ((">", each.request), ("<", each.response)):
            if raw is not None:
                first, *rest = dump(raw).splitlines(keepends=True)
                text += f"{mark} {first}" if "hexdump (" not in first else f"{mark} {rest.pop(0)}"
                text += "".join(rest)
    assert said_of(read(text)) == [(each.request, each.response) for each in said]


@settings(max_examples=quick(25, 8))
@given(talks(most=3))
def test_followed_streams_tell_by_their_indentation(said: list[Said]) -> None:
    """Wireshark's: offsets count on in either direction, what the broker said is indented."""
    text, at = "", {True: 0, False: 0}
    for each in said:
        for is_client, raw in ((True, each.request), (False, each.response)):
            for place, part in lines_of(raw or b""):
                halves = f"{part[:8].hex(' '):<23}  {part[8:].hex(' '):<23}"
                indent = "" if is_client else "    "
                offset = at[is_client] + place
                text += f"{indent}{offset:08X}  {halves}   {text_of(part)}\n"
            at[is_client] += len(raw or b"")
    expected = {(each.request, each.response) for each in said}
    assert set(said_of(read(text))) == expected


@pytest.mark.parametrize("dump", [plain, spaced, xxd, hexdump, librdkafka])
def test_without_marks_a_response_is_known_by_its_correlation_id(
    dump: Callable[[bytes], str],
) -> None:
    rng = random.Random(7)
    said = [say(rng, 1000 + number) for number in range(20)]
    text = "".join(dump(raw) for each in said for raw in each[3:] if raw is not None)
    assert said_of(read(text)) == [(each.request, each.response) for each in said]


@pytest.mark.parametrize(
    ("command", "options"), [("xxd", []), ("xxd", ["-g1"]), ("hexdump", ["-C"]),
                             ("od", ["-A", "x", "-t", "x1z"])],
)  # fmt: skip
def test_the_tools_themselves(command: str, options: list[str], tmp_path: Path) -> None:
    """That the forms above are theirs. Where a tool is absent its form is tested all the same."""
    path = shutil.which(command)
    raw = say(random.Random(3), 5).request
    (tmp_path / "frame").write_bytes(raw)
    ours = {("xxd", 0): xxd, ("xxd", 1): xxd_g1, ("hexdump", 1): hexdump, ("od", 4): od}
    text = ours[command, len(options)](raw)
    if path is not None:
        line = [path, *options, str(tmp_path / "frame")]
        # od and hexdump write `*` for lines that repeat: none of these do.
        text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert said_of(read(text)) == [(raw, None)]


def test_a_line_that_is_missing_is_told() -> None:
    raw = say(random.Random(3), 5).request + bytes(100)
    lines = hexdump(raw).splitlines(keepends=True)
    items = read("".join([lines[0], *lines[2:]]))
    damaged = [item for item in items if isinstance(item, Anomaly) and item.kind == "damaged"]
    assert len(damaged) >= 1
    assert damaged[0].place.offset == len(lines[0])


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "hello\n", "abc\n", '{"a": 1}\n'])
def test_what_is_no_hexadecimal(text: str) -> None:
    assert not is_hexadecimal(text)


@given(st.text())
def test_any_text_ends_in_items_or_anomalies(text: str) -> None:
    is_hexadecimal(text)
    for item in read(text):
        assert isinstance(item, Exchange | Anomaly)


def test_a_file_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    raw = say(random.Random(3), 5).request
    path = tmp_path / "frame.txt"
    path.write_text(xxd(raw))
    sources = open_sources([str(path)])
    (exchange,) = (item for item in sources if isinstance(item, Exchange))
    assert exchange.request is not None
    assert exchange.request.raw == raw
    assert [each.kind for each in sources.read] == ["hexadecimal"]
