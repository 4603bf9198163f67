"""What tshark makes of a capture, as data: its PDML (packets in XML), read a packet at a time.

Knows how PDML writes things and how tshark is started; nothing of what any field means.
"""

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, iterparse

__all__ = ["LUA_TEXT", "Field", "Pdu", "kafka_pdus", "tshark"]

LUA_TEXT = "_ws.lua.text"
"""The name of a line of text that a dissector in Lua adds; its text stands in ``showname``."""


class Field(NamedTuple):
    """``offset`` counts from the first byte of the frame's size, ``raw`` are the bytes. ``show`` is
    the value as text. Those tshark made up (``length`` 0) have no bytes. ``inside`` are the texts
    of the subtrees it stands in, outermost first."""

    name: str
    offset: int
    length: int
    show: str
    raw: bytes
    inside: tuple[str, ...]


class Pdu(NamedTuple):
    """One frame of Kafka as tshark found it, in the packet that has its last byte. ``malformed``:
    it gave up before the frame's end."""

    packet: int
    stream: int
    source_port: int
    target_port: int
    title: str
    fields: list[Field]
    malformed: bool = False

    def first(self, name: str) -> str | None:
        return next((field.show for field in self.fields if field.name == name), None)


def tshark(capture: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Started on a capture, with streams put together as they were sent, not as captured."""
    command = [
        "tshark", "-r", str(capture), "-o", "tcp.reassemble_out_of_order:TRUE",
        "-o", "kafka.show_string_bytes_lengths:FALSE", *arguments,
    ]  # fmt: skip
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def kafka_pdus(
    capture: Path, ports: Iterable[int], *arguments: str, protocol: str = "kafka"
) -> Iterator[Pdu]:
    """Every frame of Kafka on these ports, in the order of the packets. ``protocol`` names the
    dissector; ``arguments`` are added to tshark's."""
    hints = [part for port in ports for part in ("-d", f"tcp.port=={port},{protocol}")]
    layers = ("-Y", protocol, "-J", f"tcp {protocol}", "-T", "pdml")
    with tshark(capture, *arguments, *hints, *layers) as process:
        assert process.stdout is not None
        for _, element in iterparse(process.stdout):
            if element.tag == "packet":
                yield from _pdus(element, protocol)
                element.clear()
    if process.returncode != 0:
        raise RuntimeError(f"tshark ended with status {process.returncode}")


def _pdus(packet: Element, protocol: str) -> list[Pdu]:
    found: list[Pdu] = []
    number = stream = source = target = 0
    for proto in packet.findall("proto"):
        match proto.get("name"):
            case "geninfo":
                number = int(_shown(proto, "num"))
            case "tcp":
                stream = int(_shown(proto, "tcp.stream"))
                source, target = (int(_shown(proto, f"tcp.{end}port")) for end in ("src", "dst"))
            case name if name == protocol:
                start = int(proto.get("pos", "0"))
                fields = list(_fields(proto, start, ()))
                found.append(Pdu(number, stream, source, target, proto.get("showname", ""), fields))
            case "_ws.malformed" if found:
                found[-1] = found[-1]._replace(malformed=True)
    return found


def _shown(proto: Element, name: str) -> str:
    (found,) = (
        field.get("show", "") for field in proto.findall("field") if field.get("name") == name
    )
    return found


def _fields(parent: Element, start: int, inside: tuple[str, ...]) -> Iterator[Field]:
    for each in parent.findall("field"):
        name = each.get("name", "")
        show = each.get("showname" if name == LUA_TEXT else "show", "")
        if name:
            offset, length = int(each.get("pos", "0")) - start, int(each.get("size", "0"))
            value = each.get("unmaskedvalue", each.get("value", "")) if length else ""
            raw = bytes.fromhex(value) if len(value) % 2 == 0 else b""
            yield Field(name, offset, length, show, raw, inside)
        yield from _fields(each, start, inside if name not in ("", LUA_TEXT) else (*inside, show))
